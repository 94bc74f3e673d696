"""What commands hold is bounded: a capture of ordinary traffic takes less than `MOST` megabytes in each of them."""

from pathlib import Path
from typing import Final

import pytest

from tools.benchmarks.captures import mixed
from tools.benchmarks.measuring import KDISSECT, measured

MOST: Final = 150
"""Megabytes with libraries and mapped pages."""
PACKETS: Final = 84_000
"""17 MB, with connections, groups and topics as many as detectors remember."""


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory") / "mixed.pcap"
    mixed(path, PACKETS)
    return path


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [["show"], ["show", "-f", "json"], ["stats"], ["check"], ["records"], ["groups"], ["show", "-Y", "error"]]
)
def test_ordinary_traffic_takes_little_memory(capture: Path, words: list[str]) -> None:
    assert measured([*KDISSECT, *words, str(capture)], 1).megabytes < MOST

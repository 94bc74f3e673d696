"""A row says that a message of it was not read to its end: a mark, and where and why; of a cut one, that it was cut."""

from collections import deque
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from tests.traffic import Turn, conversation, ethernet, pcap
from tools.fuzz.logins import METADATA, VERSIONS


def last_row(tmp_path: Path, turns: list[Turn], snaplen: int = 262144) -> Exchange:
    path = tmp_path / "made.pcap"
    path.write_bytes(pcap([ethernet(packet) for packet in conversation(turns)], snaplen=snaplen))
    with Capture([str(path)]) as capture:
        deque(capture.read(), maxlen=0)
        return capture.exchange(len(capture) - 1)


def sized(data: bytes) -> bytes:
    return (len(data) - 4).to_bytes(4, "big") + data[4:]


@pytest.mark.parametrize("pair", [VERSIONS, METADATA])
def test_surplus_bytes_and_bytes_that_do_not_fit_are_in_the_row(tmp_path: Path, pair: object) -> None:
    asked, answered = VERSIONS if pair is VERSIONS else METADATA
    size = len(answered.data)
    surplus = f"response.(rest): 1 byte after the last field, at offset {size}"
    for data, code, words in (
        (sized(answered.data + b"\7"), "trailing-bytes", surplus),
        (sized(answered.data[:-1]), "malformed", f", at offset {size - 1}; 0 bytes could not be read"),
    ):  # fmt: skip
        row = last_row(tmp_path, [Turn(True, asked.data), Turn(False, data)]).row
        assert row.info.startswith(f"[{code}] response.")
        assert words in row.info
    row = last_row(tmp_path, [Turn(True, asked.data), Turn(False, answered.data)]).row
    assert "[" not in row.info


def test_a_message_that_was_cut_is_no_malformed_one(tmp_path: Path) -> None:
    asked, answered = METADATA
    turns = [Turn(True, asked.data), Turn(False, sized(answered.data + bytes(200)))]
    exchange = last_row(tmp_path, [Turn(True, VERSIONS[0].data), Turn(False, VERSIONS[1].data), *turns], snaplen=76)
    codes = [finding.code for finding in exchange.findings]
    assert "incomplete-frame" in codes
    assert "malformed" not in codes
    assert "[malformed]" not in exchange.row.info

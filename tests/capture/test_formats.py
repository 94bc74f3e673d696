"""One capture in every format and way of arriving that people have: the same exchanges each time."""

import json
import os
import subprocess
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dissector.capture_session import Capture
from dissector.exchange.to_json import json_line
from tests.capture.writers import COMPRESSIONS, PCAPNGS, PCAPS, Seen, members, pcap, pcapng, seen
from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS as BUNDLED
from tests.imprecise import DURATIONS
from tests.needs import needs

CLEAN = BUNDLED / "librdkafka.pcapng"
FORMATS = PCAPS | PCAPNGS
EDITCAP = ("pcap", "nsecpcap", "modpcap", "nokiapcap", "rh6_1pcap", "suse6_3pcap", "pcapng")


@cache
def clean_packets() -> list[Seen]:
    return seen(CLEAN)


def comparable(lines: list[bytes], unit: int) -> list[Any]:
    """Lines of `show`, as exact in time as a format is."""
    values = [json.loads(line) for line in lines]
    for value in values:
        for name in DURATIONS:
            value.pop(name, None)
        for part in (value, value.get("request"), value.get("response")):
            if part and "time_ns" in part:
                part["time_ns"] //= unit
    return values


def shown(*paths: Path, unit: int = 1) -> tuple[list[Any], list[str]]:
    """What `show` says of files, and the codes of what is wrong with them."""
    with Capture([str(path) for path in paths]) as capture:
        lines = [json_line(exchange) for exchange in capture.exchanges()]
        return comparable(lines, unit), [problem.code for problem in capture.problems]


@cache
def clean(unit: int = 1) -> list[Any]:
    return shown(CLEAN, unit=unit)[0]


def written(folder: Path, data: bytes, name: str = "any.name") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.long
@pytest.mark.slow
@cases("name", FORMATS)
def test_every_format_gives_the_same_exchanges(tmp_path: Path, name: str) -> None:
    write, unit = FORMATS[name]
    found, problems = shown(written(tmp_path, write(clean_packets())), unit=unit)
    assert found == clean(unit)
    assert problems == (["packets-dropped"] if name == "pcapng, every block" else [])


@pytest.mark.parametrize("form", EDITCAP)
def test_what_editcap_writes_gives_the_same_exchanges(tmp_path: Path, form: str) -> None:
    needs("editcap")
    path = tmp_path / "any.name"
    subprocess.run(["editcap", "-F", form, CLEAN, path], check=True, capture_output=True)
    unit = 1 if form in ("nsecpcap", "pcapng") else 1000
    assert shown(path, unit=unit) == (clean(unit), [])


@pytest.mark.long
@pytest.mark.slow
@cases("way", COMPRESSIONS)
@cases("make", [pcap, pcapng])
def test_compressed_captures_give_the_same_exchanges(
    tmp_path: Path, way: str, make: Callable[[list[Seen]], bytes]
) -> None:
    unit = 1000 if make is pcap else 1
    path = written(tmp_path, COMPRESSIONS[way](make(clean_packets())))
    assert shown(path, unit=unit) == (clean(unit), [])


@pytest.mark.parametrize("way", COMPRESSIONS)
def test_compressed_members_follow_each_other(tmp_path: Path, way: str) -> None:
    path = written(tmp_path, members(pcapng(clean_packets()), COMPRESSIONS[way]))
    assert shown(path) == (clean(), [])


@pytest.mark.long
@pytest.mark.slow
@cases("way", ["plain", *COMPRESSIONS])
def test_standard_input_gives_the_same_exchanges(way: str) -> None:
    data = pcapng(clean_packets())
    done = kdissect("show", "-", "-f", "json", data=data if way == "plain" else COMPRESSIONS[way](data))
    assert not done.stderr
    assert comparable(done.stdout.splitlines(), 1) == clean()


@pytest.mark.slow
def test_standard_input_that_is_a_file_is_read_like_one(tmp_path: Path) -> None:
    path = written(tmp_path, COMPRESSIONS["gzip"](pcapng(clean_packets())))
    for given in (CLEAN, path):
        with given.open("rb") as file:
            done = kdissect("show", "-", "-f", "json", file=file)
        assert comparable(done.stdout.splitlines(), 1) == clean()


@pytest.mark.long
@cases("pieces", [1, 7, 400])
@cases("make", [pcap, pcapng])
def test_a_pipe_that_gives_a_few_bytes_at_a_time_gives_the_same(
    tmp_path: Path, pieces: int, make: Callable[[list[Seen]], bytes]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = make(clean_packets())
    step = len(data) // pieces + 1

    def write() -> None:
        with pipe.open("wb", buffering=0) as file:
            for at in range(0, len(data), step):
                file.write(data[at : at + step])

    writer = threading.Thread(target=write)
    writer.start()
    unit = 1000 if make is pcap else 1
    assert shown(pipe, unit=unit) == (clean(unit), [])
    writer.join()


def test_hex_and_segments_are_recognized_in_compressed_files(tmp_path: Path) -> None:
    segment = next((BUNDLED / "segments").glob("*/*.log"))
    folder = tmp_path / segment.parent.name
    folder.mkdir()
    path = written(folder, COMPRESSIONS["zstd"](segment.read_bytes()))
    plain, packed = shown(segment)[0], shown(path)[0]
    assert plain
    assert [value | {"file": ""} for value in packed] == [value | {"file": ""} for value in plain]
    text = written(tmp_path, COMPRESSIONS["gzip"](b"> 0000000e 0012 0000 00000001 0004 74657374\n"))
    [found], _ = shown(text)
    assert (found["api"], found["client_id"]) == ("ApiVersions", "test")

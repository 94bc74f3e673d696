"""The client id of a row: whole, however long it is, and none where the wire has none."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from dissector.capture_session import Capture
from dissector.index.message_headers import ClientIds
from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.traffic import Turn, capture_of, conversation, request, response

LONGEST = 0x7FFF


def lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in kdissect("show", path, "-f", "json").stdout.splitlines()]


@pytest.mark.long
@cases("size", [255, 256, 257, 4_000, LONGEST])
def test_a_client_id_is_whole_in_json_and_filters_and_marked_in_the_list(tmp_path: Path, size: int) -> None:
    name = "é" * (size // 2) + "x" * (size % 2)
    turns = [Turn(True, request(1, client_id=name.encode())), Turn(False, response(1))]
    path = capture_of(tmp_path, conversation([*turns, Turn(True, request(2)), Turn(False, response(2))]))
    found = lines(path)
    assert [line["client_id"] for line in found] == [name, "tests"]
    assert found[0]["request"]["header"]["client_id"] == name
    assert kdissect("show", path, "-Y", f'client_id == "{name}"', "--fields", "number").stdout == b"1\n"
    listed = kdissect("show", path).stdout.decode().splitlines()[1]
    assert (f"… ({len(name):,} characters)" in listed) == (len(name) > 256)
    assert (name in listed) == (len(name) <= 256)


def test_long_client_ids_beyond_the_bound_are_cut_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissector.index.message_headers.LONG_CLIENT_IDS", 1_000)
    ids = ClientIds()
    numbers = [ids.number(raw, 0) for raw in (b"a" * 900, b"b" * 300, b"c" * 256, b"a" * 900, b"b" * 300)]
    assert numbers == [1, 2, 3, 1, 2]
    assert ids.texts == [None, "a" * 900, "b" * 256 + "… (300 bytes)", "c" * 256]


def test_long_client_ids_may_have_as_many_bytes_as_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissector.index.message_headers.LONG_CLIENT_IDS", 1_000)
    ids = ClientIds()
    for raw in (b"a" * 600, b"b" * 400, b"c" * 257):
        ids.number(raw, 0)
    assert ids.texts == [None, "a" * 600, "b" * 400, "c" * 256 + "… (257 bytes)"]


def test_controlled_shutdown_v0_has_no_client_id(tmp_path: Path) -> None:
    frame = struct.pack(">ihhii", 12, 7, 0, 5, 0x00010041)
    turns = [Turn(True, frame), Turn(False, response(5, bytes(6)))]
    path = capture_of(tmp_path, conversation([Turn(True, request(1)), Turn(False, response(1)), *turns]))
    line = lines(path)[1]
    assert (line["api"], line["api_version"], line["client_id"]) == ("ControlledShutdown", 0, None)
    assert line["request"]["body"] == {"broker_id": 0x00010041}
    with Capture([path]) as capture:
        for _ in capture.read():
            pass
        assert capture.exchange(1).row.client_id is None
    assert kdissect("show", path).stdout.decode().splitlines()[2].split()[-1] != ":"

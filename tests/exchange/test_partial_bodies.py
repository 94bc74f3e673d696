"""Bodies that can't be read to their end: what is whole is in JSON, `--fields` and filters."""

import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dissector
from dissector.capture_session import Capture
from dissector.exchange.to_json import json_line
from dissector.protocol.codec.plan import plan
from dissector.protocol.message import read
from dissector.protocol.message_layout import PREFIX, MessageLayout
from dissector.protocol.schema.index import IndexEntry
from dissector.protocol.schema.loader import entries
from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.protocol.random_messages import make
from tests.traffic import ACK, FIN, Packet, Turn, capture_of, conversation, request, response

RESPONSES = [entry for entry in entries() if entry.type == "response"]
HEADER = PREFIX + 4


def is_beginning(part: object, whole: object) -> bool:
    """Whether all values of a part are those of the whole, from its beginning on; elements of arrays may be missing."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and is_beginning(value, whole[name]) for name, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(is_beginning, part, whole))
    return part == whole or part != part


def leaves(value: object) -> int:
    if isinstance(value, dict):
        return sum(map(leaves, value.values()))
    return sum(map(leaves, value)) if isinstance(value, list) else 1


@given(st.sampled_from(RESPONSES), st.integers(0, 9999), st.data())
def test_each_cut_keeps_all_fields_before_it(entry: IndexEntry, seed: int, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(list(entry.valid_versions)))
    _, raw = make(plan(entry.name, version), random.Random(seed))
    frame = struct.pack(">ii", 4 + len(raw), 7) + raw
    layout = MessageLayout("ResponseHeader", 0, entry.name, version)
    whole = read(frame, layout)
    assert not whole.rest
    known = 0
    for size in sorted({data.draw(st.integers(HEADER, len(frame) - 1)) for _ in range(8)} if raw else ()):
        cut = read(frame[:size], layout)
        if cut.body or (not cut.partial_bytes and not cut.rest):
            continue  # nothing of the body is needed, or nothing is there
        assert frame[:HEADER] + cut.partial_bytes + cut.rest == frame[:size]
        assert is_beginning(cut.partial, whole.body)
        assert leaves(cut.partial) >= known
        known = leaves(cut.partial)


def cut_in_metadata(folder: Path, missing: int) -> str:
    """A Metadata response of which the capture lacks the end: the connection goes on behind it. Its request is not the
    first one, whose response would be masked: it might be one to a login."""
    topics = [{"name": name, "partitions": [{"leader_id": n} for n in range(2)]} for name in ("orders", "billing")]
    body = {"brokers": [{"node_id": 1, "host": "one", "port": 9092}], "topics": topics}
    frame = dissector.encode_response("Metadata", 1, body, correlation_id=2)
    first = [Turn(True, request(1)), Turn(False, response(1))]
    packets = conversation([*first, Turn(True, request(2, version=1)), Turn(False, frame)])
    packets[-1] = Packet(False, packets[-1].seq, packets[-1].payload[: len(frame) - missing])
    return capture_of(folder, [*packets, Packet(False, packets[-1].seq + len(frame), b"", ACK | FIN)])


@pytest.mark.long
@cases("missing", [1, 9, 30, 60])
def test_a_cut_response_has_its_fields_in_json_text_fields_and_filters(tmp_path: Path, missing: int) -> None:
    path = cut_in_metadata(tmp_path, missing)
    line = json.loads(kdissect("show", path, "-f", "json").stdout.splitlines()[1])
    found: dict[str, Any] = line["response"]
    assert found["body"]["brokers"] == [{"node_id": 1, "host": "one", "port": 9092, "rack": None}]
    names = [topic["name"] for topic in found["body"].get("topics", ()) if "name" in topic]
    assert names == ["orders", "billing"][: 2 if missing < 60 else 1]
    assert kdissect("show", path, "--fields", "response.topics.name").stdout.decode().splitlines()[1] == ",".join(names)
    for name in names:
        assert kdissect("show", path, "-Y", f'response.topics.name == "{name}"').returncode == 0
        assert name in kdissect("show", path, "-f", "tree").stdout.decode()
    with Capture([path]) as capture:
        for _ in capture.read():
            pass
        _, exchange = capture.exchanges()
        assert exchange.response is not None
        assert exchange.response.body == {}, "findings, names and timelines take nothing from it"
        data = exchange.response.data
        whole = json.loads(json_line(exchange)) | {"request": None, "response": found | {"size": len(data)}}
        _, written = dissector.encode(whole)
        assert written is not None
        assert written[PREFIX:] == data[PREFIX:]

"""Frames redacted without a tree are, byte for byte, those redacted by their trees, and teach the same names."""

from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

import dissector
from dissector.bulk.message_texts import MessageTexts
from dissector.capture_session import Capture
from dissector.core.limits import DEFAULT
from dissector.export.redaction.frames import Redactor
from dissector.export.redaction.plain_frames import PlainFrames
from dissector.export.redaction.rows import FrameSide, RedactedFrames
from dissector.protocol.message import read
from dissector.protocol.message_layout import request_layout
from dissector.protocol.records.batch import Batch
from dissector.protocol.records.from_json import records_bytes
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.schema.api_keys import ApiKey
from tests.cases import cases
from tests.conftest import PCAPS, some_of
from tests.traffic import Turn, capture_of, conversation

RECORDINGS: Final = (
    "java.pcapng", "java-share.pcapng", "java-admin.pcapng", "java-sasl-plain.pcapng", "kafka-python-as-0.9.pcapng",
    "sarama-2.3.0.pcapng",
)  # fmt: skip
OTHERS: Final = (
    "java-transactions.pcapng", "kraft-quorum.pcapng", "librdkafka-pipelined.pcapng", "two-brokers.pcapng",
    "trouble-stuck-fetch.pcapng", "encoder.pcapng",
)  # fmt: skip
NAME: Final = int.from_bytes(b"name", "big")


@dataclass
class Result:
    """What became of a capture."""

    frames: list[bytes]
    names: list[str]
    """What is left of the redactor: the names that it learned, and their pseudonyms."""
    plain: Counter[bool] = field(default_factory=Counter)
    """How many frames were redacted without a tree."""


def redacted(path: str, monkeypatch: pytest.MonkeyPatch, *, by_tree: bool) -> Result:
    """Redact all frames of a capture, each of them in its turn."""
    found = Result([], [])
    plain_redacted = PlainFrames.redacted

    def counted(frames: PlainFrames, message: MessageTexts) -> bytes | None:
        made = plain_redacted(frames, message)
        found.plain[made is not None] += 1
        return made

    with Capture([path]) as capture, monkeypatch.context() as patch:
        list(capture.read())
        patch.setattr(PlainFrames, "redacted", counted)
        if by_tree:
            patch.setattr(PlainFrames, "learn", lambda *_: False)
            patch.setattr(PlainFrames, "redacted", lambda *_: None)
        redactor = Redactor()
        frames = RedactedFrames(capture, redactor)
        frames.learn(range(len(capture)))
        sides = [
            FrameSide(row, span.of_client, span.size)
            for row in range(len(capture))
            for span in capture.frames.spans(row)
        ]
        found.frames = list(frames.contents(sides))
        learned = redactor.remnants._names  # what it says of bytes is seen only where there is a piece of a name
        found.names = [f"{len(learned)} {hash(frozenset(learned))}", repr(vars(redactor.names)), str(redactor.lost)]
    return found


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("names", some_of([RECORDINGS, OTHERS], RECORDINGS), ids=["some", "others"])
def test_recordings(names: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in names:
        plain = redacted(str(PCAPS / name), monkeypatch, by_tree=False)
        tree = redacted(str(PCAPS / name), monkeypatch, by_tree=True)
        assert plain.frames == tree.frames, name
        assert plain.names == tree.names, name


def test_ordinary_traffic_needs_no_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = redacted(str(PCAPS / "librdkafka-pipelined.pcapng"), monkeypatch, by_tree=False)
    assert plain.plain[True] >= 0.95 * len(plain.frames)


def record(value: str | None, key: str | None = None, headers: dict[str, str | None] | None = None) -> dict[str, Any]:
    """A record; texts become bytes."""
    return {
        "offset": 0, "timestamp": 1_790_000_000_000, "key": key and key.encode().hex(),
        "value": value and value.encode().hex(),
        "headers": [{"key": name, "value": each and each.encode().hex()} for name, each in (headers or {}).items()],
    }  # fmt: skip


def produced(
    tmp_path: Path, records: list[dict[str, Any]], *, codec: int = 0, topic: str = "payments", **batch: int
) -> str:
    """A capture with one Produce of a batch."""
    for number, each in enumerate(records):
        each["offset"] = number
    made = records_bytes({"batches": [
        {"base_offset": 0, "magic": 2, "attributes": codec, "base_timestamp": 1_790_000_000_000, "records": records,
         **batch}
    ]})  # fmt: skip
    data = [{"name": topic, "partition_data": [{"index": 0, "records": made}]}]
    asked = dissector.encode_request("Produce", 9, {"acks": -1, "topic_data": data}, correlation_id=7, client_id="me")
    response = dissector.encode_response("Produce", 9, {"responses": []}, correlation_id=7)
    return capture_of(tmp_path, conversation([Turn(True, asked), Turn(False, response)]))


RECORDS: Final = [
    record("value of a record " * 20, "key-of-it"), record(None, None), record("", ""),
    record("x", headers={"trace": "abcdefgh", "empty": None, "": "y", "other": ""}),
]  # fmt: skip


@cases("codec", range(5))
def test_codecs(codec: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = produced(tmp_path, [dict(each) for each in RECORDS], codec=codec)
    plain, tree = (redacted(path, monkeypatch, by_tree=by_tree) for by_tree in (False, True))
    assert plain.frames == tree.frames
    assert plain.names == tree.names
    assert plain.plain[True] == 2
    assert not any(word in b"".join(plain.frames) for word in (b"payments", b"value", b"key-of", b"trace", b"abcd"))


@pytest.mark.long
@pytest.mark.slow
def test_many_records_need_no_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame of a few kilobytes may have that many, and their trees took a second a frame."""
    count = DEFAULT.packed_records - 1
    path = produced(tmp_path, [record("abcdefgh") for _ in range(count)], codec=4)
    plain = redacted(path, monkeypatch, by_tree=False)
    assert plain.plain == {True: 2}
    body = read(plain.frames[0], request_layout(ApiKey.PRODUCE, 9)).body
    section = body["topic_data"][0]["partition_data"][0]["records"]
    batch = Batch.read(section)
    assert batch.crc_valid
    assert [each.value for each in batch.records(frame_budget())] == [b"*" * 8] * count


@cases(("records", "fields"), [
    ([record("v")], {"topic": "__consumer_offsets"}),
    ([record("v")], {"attributes": 0x20}),
    ([record("v", headers={"authorization": "Bearer abcdefgh"})], {}),
    ([record("v", "name-1")], {"producer_id": NAME << 16}),
])  # fmt: skip
def test_what_needs_a_closer_look_is_redacted_by_its_tree(
    records: list[dict[str, Any]], fields: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = produced(tmp_path, records, **fields)
    plain, tree = (redacted(path, monkeypatch, by_tree=by_tree) for by_tree in (False, True))
    assert plain.frames == tree.frames
    assert plain.plain[True] == 1  # the response
    assert b"name" not in b"".join(plain.frames)


@cases(("beside", "pseudonym", "plain"), [(b"Kxz", b"topic-000*", 1), (b"Kx\1", b"topic-0001", 2)])
def test_an_id_that_makes_a_piece_of_a_name_with_a_pseudonym_is_left_to_the_tree(
    beside: bytes, pseudonym: bytes, plain: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The frame is sound, as its layout says, and has fewer bytes of the name than are a piece."""
    topic_id = urlsafe_b64encode(beside.ljust(16, b"\1")).rstrip(b"=").decode()
    topics = [{"name": "abcdefghij", "topic_id": topic_id}]
    asked = dissector.encode_request("Metadata", 12, {"topics": []}, correlation_id=7, client_id="q1Kxz")
    response = dissector.encode_response("Metadata", 12, {"brokers": [], "topics": topics}, correlation_id=7)
    path = capture_of(tmp_path, conversation([Turn(True, asked), Turn(False, response)]))
    made, tree = (redacted(path, monkeypatch, by_tree=by_tree) for by_tree in (False, True))
    assert made.frames == tree.frames
    assert pseudonym + beside in made.frames[1]
    assert made.plain[True] == plain


def test_secrets_that_are_shown_are_redacted_by_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(PCAPS / "java-sasl-plain.pcapng")
    with Capture([path], show_secrets=True) as shown, Capture([path]) as masked:
        frames = []
        for capture in (shown, masked):
            list(capture.read())
            made = RedactedFrames(capture, Redactor())
            made.learn(range(len(capture)))
            frames.append(list(made.contents(FrameSide(row, True, 100) for row in range(len(capture)))))
    assert frames[0] == frames[1]
    assert ApiKey.SASL_AUTHENTICATE in {int.from_bytes(frame[4:6], "big") for frame in frames[0]}

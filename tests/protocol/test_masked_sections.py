"""Sections of records that can't be opened, wrappers of old messages, and pieces of both: what may be a secret there is
masked, or the whole section."""

import contextlib
import json
import random
import zlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import google_crc32c
import pytest

import dissector
from dissector.capture_session import Capture
from dissector.core.expansion import RUN
from dissector.exchange.to_json import findings_object, json_line
from dissector.protocol.codec.writer import write
from dissector.protocol.record_masking import masked_records, masked_unread
from dissector.protocol.records.batch import CRC_FROM, HEADER, Batch
from dissector.protocol.records.compression import CODECS, DecompressionBudget, DecompressionError
from dissector.protocol.records.entries import LOG_OVERHEAD, SIZE_AT
from dissector.protocol.records.from_json import batch_bytes, message_bytes
from dissector.protocol.records.legacy import LegacyRecord
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.schema.field_enums import CompressionType
from dissector.protocol.schema.loader import api
from tests.conftest import some_of
from tests.protocol.test_record_masking import objects
from tests.traffic import Turn, capture_of, conversation
from tools.fuzz.leaks import Pieces, leak, rare_faces
from tools.fuzz.records_with_secrets import CARRIERS
from tools.fuzz.seeds import framed


def stored(codec: int, plain: bytes) -> bytes:
    """A section whose texts stay as they are: gzip stores them, the others do where nothing repeats."""
    packer = zlib.compressobj(0, wbits=31)
    return packer.compress(plain) + packer.flush() if codec == CompressionType.GZIP else CODECS[codec].compress(plain)


def packed_batch(codec: int, records: list[dict[str, Any]]) -> bytes:
    section = stored(codec, Batch.read(batch_bytes({"records": records})).section)
    head = batch_bytes({"records": records, "attributes": codec})[: HEADER.size]
    head = head[:SIZE_AT] + (len(head) - LOG_OVERHEAD + len(section)).to_bytes(4, "big") + head[LOG_OVERHEAD:]
    crc = google_crc32c.value(head[CRC_FROM:] + section)
    return head[: CRC_FROM - 4] + crc.to_bytes(4, "big") + head[CRC_FROM:] + section


def packed_message(codec: int, magic: int, inner: bytes, key: bytes | None = None) -> bytes:
    section = stored(codec, inner)
    section = section if magic else CODECS[codec].as_magic_0(section)
    return message_bytes({"magic": magic, "attributes": codec, "compressed": section, "key": key})


WORD = b"hUnTeR2hUn"
SHORT = b'{"pwd":"' + WORD + b'"}'
AUTHORIZED = [{"value": b"x", "headers": [{"key": "Authorization", "value": WORD}]}]
PACKED = [
    *(packed_batch(codec, records) for codec in (1, 2, 3, 4) for records in ([{"value": SHORT}], AUTHORIZED)),
    *(packed_message(codec, magic, message_bytes({"magic": magic, "value": SHORT}))
      for codec in (1, 2, 3) for magic in (0, 1)),
]  # fmt: skip


@pytest.fixture
def no_room(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The room of the run is used up."""
    monkeypatch.setattr(RUN, "_size", 0)
    RUN.begin()
    yield
    monkeypatch.undo()
    RUN.begin()


@pytest.mark.long
@pytest.mark.usefixtures("no_room")
@pytest.mark.parametrize("number", some_of(range(len(PACKED)), 0, 3, 4, 7, 8, 11, 13))
def test_no_face_shows_a_section_that_the_run_has_no_room_for(number: int, tmp_path: Path) -> None:
    field = PACKED[number]
    assert WORD in field
    turns = []
    for key, make in CARRIERS.items():
        version, request, response = make(field, of_log=False, chance=random.Random(number))
        known = api(key)
        assert known is not None
        turns += [
            Turn(True, framed("request", key, version, write(known.request, version, request))),
            Turn(False, framed("response", key, version, write(known.response, version, response))),
        ]
    (tmp_path / "00000000000000000000.log").write_bytes(field)
    for path in (capture_of(tmp_path, conversation(turns)), str(tmp_path / "00000000000000000000.log")):
        with Capture([path]) as capture:
            deque(capture.read(), maxlen=0)
            assert len(capture)
            assert not leak(capture, [WORD], rare_faces)
            shown = [line for text in capture.messages.json_lines(range(len(capture))) for line in text.parts() if line]
            assert Pieces([WORD]).first_in(b"".join(map(bytes, shown))) is None
        with dissector.open(path) as opened:
            RUN.take(1, 1 << 40)
            records = [(each.key, each.value, each.headers) for each in opened.records()]
            assert Pieces([WORD]).first_in(repr(records).encode()) is None


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [1, 2, 3])
def test_in_a_wrapper_all_is_masked_that_is_not_a_message(codec: int, magic: int) -> None:
    message = message_bytes({"magic": magic, "value": b"x"})
    cut = message_bytes({"magic": magic, "value": SHORT + b"more"})[:-4]
    for inner in (message + cut, message + packed_batch(codec, AUTHORIZED), batch_bytes({"records": AUTHORIZED})):
        field = packed_message(codec, magic, inner)
        found = LegacyRecord.read(masked_records(field))
        assert found.crc_valid
        assert WORD not in found.data
        with contextlib.suppress(DecompressionError):  # masked whole
            assert WORD not in frame_budget().decompressed(codec, found.value or b"", magic=magic)


@pytest.mark.parametrize("codec", range(5))
def test_of_a_compressed_batch_that_was_cut_all_is_masked_as_names_may_be_elsewhere(codec: int) -> None:
    records = [{"value": WORD}]
    field = packed_batch(codec, records) if codec else batch_bytes({"records": records})
    assert masked_unread(field) == field
    found = masked_unread(field[:-1])
    assert found[: HEADER.size] == field[: HEADER.size]
    assert (WORD in found) == (codec == 0)


@pytest.mark.parametrize("value", [b"", b"x"])
def test_the_key_of_a_wrapper_is_searched(value: bytes) -> None:
    field = packed_message(1, 1, message_bytes({"value": value}), SHORT)
    found = LegacyRecord.read(masked_records(field))
    assert (found.key, found.crc_valid) == (SHORT.replace(WORD, b"*" * len(WORD)), True)
    assert found.value == LegacyRecord.read(field).value
    public = packed_message(1, 1, message_bytes({"value": value}), b"k")
    assert masked_records(public) is public


@pytest.mark.parametrize("size", [1, 1021, 1022, 5000])
def test_credentials_of_users_with_long_names_are_masked(size: int) -> None:
    value = b"\x01\x0b\0" + write(
        "UserScramCredentialRecord", 0, {"name": "a" * size, "mechanism": 1, "stored_key": WORD, "salt": b"salt"}
    )
    assert WORD not in masked_records(batch_bytes({"records": [{"value": value}]}))


LARGE = [{"value": json.dumps({"pwd": WORD.decode(), "more": "a" * 5000}).encode()}]


def test_what_is_too_large_is_masked_behind_what_is_not_charged_when_it_is_read() -> None:
    field, damaged = batch_bytes({"records": LARGE, "attributes": 1}), packed_batch(1, AUTHORIZED)[:-1] + b"!"
    budget = DecompressionBudget(6000, 6000)
    assert masked_records(damaged, budget) != damaged  # and charged, but not to who reads it
    assert Batch.read(masked_records(field, budget)).is_masked
    small = DecompressionBudget(100, 100)
    assert masked_records(field, small) == field  # who reads it has no more room, and says why
    assert not Batch.read(masked_records(field, DecompressionBudget(9000, 9000))).is_masked


@pytest.mark.usefixtures("no_room")
@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_what_a_run_had_no_room_for_is_not_shown_in_the_next_one(codec: int) -> None:
    field = masked_records(batch_bytes({"records": LARGE, "attributes": codec}))
    RUN._numbers[0] = 1 << 40
    assert WORD not in repr(objects(field)).encode()
    assert Batch.read(field).is_masked


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_why_a_masked_section_could_not_be_opened_is_said(codec: int, tmp_path: Path) -> None:
    whole = packed_batch(codec, AUTHORIZED)
    damaged = bytearray(whole)
    damaged[HEADER.size] ^= 0xFF
    log = str(tmp_path / "00000000000000000000.log")
    for field, is_damaged in ((whole, False), (bytes(damaged), True)):
        version, request, _ = CARRIERS[0](field, of_log=False, chance=random.Random(1))
        turns = [Turn(True, framed("request", 0, version, write("ProduceRequest", version, request)))]
        Path(log).write_bytes(field)
        for path in (capture_of(tmp_path, conversation(turns)), log):
            with Capture([path]) as capture:
                deque(capture.read(), maxlen=0)
                [exchange] = capture.exchanges()
                [written] = [line for text in capture.messages.json_lines(range(1)) for line in text.parts()]
                found = [findings_object(exchange), json.loads(written or json_line(exchange))["findings"]]
            for findings in found:
                reasons = [each["message"] for each in findings if each["code"] == "bad-compression"]
                assert [words.partition(":")[0] for words in reasons] == [CODECS[codec].name] * is_damaged

"""Objects are written back to the same bytes they were read from; changed ones are encoded again."""

import gzip
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.records.batch import Record
from dissector.protocol.records.compression import CODECS
from dissector.protocol.records.from_json import records_bytes
from dissector.protocol.records.to_json import Object, records_object
from dissector.protocol.wire import EncodeError
from tests.cases import cases
from tests.protocol.records.test_batch import batch, many_records
from tests.protocol.records.test_legacy import Made, many, message, wrapper


def through_json(value: Object) -> Object:
    """As a user has it: what `show` printed, read again."""
    done: Object = json.loads(json.dumps(value, default=bytes.hex))
    return done


@pytest.mark.slow
@given(records=many_records, codec=st.integers(0, 4), messages=many, magic=st.integers(0, 1), cut=st.integers(0, 40))
def test_what_show_prints_is_written_to_the_same_bytes(
    records: list[Record], codec: int, messages: list[Made], magic: int, cut: int
) -> None:
    old = wrapper(messages, magic, codec) if 0 < codec < 4 else b"".join(message(made, magic) for made in messages)
    data = old + batch(records, codec) + batch(records)[:cut]
    assert records_bytes(through_json(records_object(data))) == data


@given(records=many_records, codec=st.integers(0, 4))
def test_changed_records_are_recompressed_with_a_valid_checksum(records: list[Record], codec: int) -> None:
    value = through_json(records_object(batch(records, codec)))
    added = {
        "offset": 5_000,
        "timestamp": 2**41,
        "key": None,
        "value": "00ff",
        "headers": [{"key": "n", "value": None}],
    }
    value["batches"][0]["records"].append(added)
    value["batches"][0] |= {"last_offset_delta": 4_900, "max_timestamp": 2**41}
    [read] = through_json(records_object(records_bytes(value)))["batches"]
    assert read["records"] == value["batches"][0]["records"]
    assert read["crc_valid"]
    assert read["records_count"] == len(records) + 1


@given(messages=many, magic=st.integers(0, 1), codec=st.integers(0, 3))
def test_changed_messages_are_wrapped_again(messages: list[Made], magic: int, codec: int) -> None:
    data = wrapper(messages, magic, codec) if codec else message(messages[0], magic)
    value = through_json(records_object(data))
    changed = value["batches"][0]["messages"][0] if codec else value["batches"][0]
    changed["value"] = "c0ffee"
    [read] = through_json(records_object(records_bytes(value)))["batches"]
    now = read["messages"][0] if codec else read
    assert (now["value"], now["offset"], now["crc_valid"]) == ("c0ffee", changed["offset"], True)


def test_a_wrong_checksum_stays_wrong() -> None:
    data = batch([Record(100, 5_000, b"k", b"v", [])], crc=7) + message(Made(1, 1, None, None), 1, crc=9)
    assert records_bytes(through_json(records_object(data))) == data


def test_the_brokers_time_of_appending_keeps_the_deltas_of_the_wire() -> None:
    data = bytearray(batch([Record(100, 5_000, b"k", b"v", []), Record(101, 5_020, b"k", b"v", [])]))
    data[22] |= 0x08
    value = through_json(records_object(bytes(data)))
    assert [record["timestamp"] for record in value["batches"][0]["records"]] == [5_020, 5_020]
    assert records_bytes(value) == bytes(data)


def test_lz4_blocks_do_not_lean_on_each_other() -> None:
    """Kafka refuses dependent blocks. Bit 5 of the frame descriptor's first byte says that they are independent."""
    assert CODECS[3].compress(b"saucer " * 99_000)[4] & 0x20


def test_a_batch_of_few_values_gets_defaults() -> None:
    value = {"batches": [{"records": [{"key": b"k", "value": b"v"}, {"value": b"w"}]}]}
    [read] = records_object(records_bytes(value))["batches"]
    assert [(r["offset"], r["key"], r["value"]) for r in read["records"]] == [(0, b"k", b"v"), (1, None, b"w")]
    assert (read["producer_id"], read["last_offset_delta"], read["crc_valid"]) == (-1, 1, True)


@cases(
    ("value", "words"),
    [
        ({"batches": 3}, "batches: is not a list of structures"),
        ({"batches": [{"records": [{"value": "zz"}]}]}, r"batches\[0\].records\[0\].value: 'zz' is not hex"),
        ({"batches": [{"attributes": 7, "records": []}]}, "codec 7 is not known"),
        ({"batches": [{"base_offset": "x", "records": []}]}, "base_offset: 'x' is not an integer"),
        ({"batches": [{"producer_epoch": 70_000, "records": []}]}, "out of range"),
        ({"batches": [{"magic": 0, "offset": 2**70}]}, "out of range"),
    ],
)
def test_values_that_cannot_be_written_are_reported(value: Object, words: str) -> None:
    with pytest.raises(EncodeError, match=words):
        records_bytes(value)


def test_what_is_left_out_is_as_a_producer_sends_it() -> None:
    data = records_bytes({"batches": [{"records": [{"key": None, "value": None}]}]})
    offset, size, epoch, magic = struct.unpack_from(">qiib", data)
    assert (offset, size, epoch, magic) == (0, len(data) - 12, data[15] - 256 if data[15] else 0, 2)
    header = struct.unpack_from(">hiqqqhii", data, 21)
    assert header == (0, 0, -1, -1, -1, -1, -1, 1)
    assert data[61:] == bytes((12, 0, 0, 0, 1, 1, 0))  # its size, attributes, deltas, null twice, no headers


def test_compressed_records_that_are_the_same_keep_their_bytes_without_a_base_offset() -> None:
    records = [Record(100 + number, 5_000, None, b"v" * 40, []) for number in range(9)]
    [value] = through_json(records_object(batch(records)))["batches"]
    section = gzip.compress(batch(records)[61:], 1)
    assert section != CODECS[1].compress(batch(records)[61:])
    for number, each in enumerate(value["records"]):
        each["offset"] = number
    value |= {"compressed": section.hex(), "attributes": 1}
    del value["base_offset"]
    assert records_bytes({"batches": [value]}).endswith(section)

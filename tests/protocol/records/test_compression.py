"""Codecs: one table, and everything that dispatches on a codec covers it."""

import contextlib
import random
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from dissector.core.limits import DEFAULT
from dissector.protocol.records.compress_to_size import COMPRESSORS
from dissector.protocol.records.compression import (
    CODEC_MASK,
    CODECS,
    USUAL_RATIO,
    DecompressionBudget,
    DecompressionError,
    TooLargeError,
    codec_name,
)
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.schema.field_enums import CompressionType
from dissector.protocol.wire import LimitError
from dissector.tables.schemas import TABLES
from tests.cases import cases

INTO = [number for number, codec in CODECS.items() if codec.into]


def test_the_table_has_every_codec_of_kafka_under_its_name() -> None:
    names = {number: codec.name.upper() for number, codec in CODECS.items()}
    assert names == {each: each.name for each in CompressionType}
    assert max(CODECS) <= CODEC_MASK


def test_redaction_compresses_with_every_codec() -> None:
    assert COMPRESSORS.keys() == CODECS.keys()


def test_the_description_of_the_tables_names_every_codec() -> None:
    columns = [column for table in TABLES for column in table.columns if column.name == "codec"]
    assert len(columns) == 2
    assert all(", ".join(codec.name for codec in CODECS.values()) in str(column) for column in columns)


@cases("number", CODECS)
def test_a_codec_reads_what_it_wrote(number: int) -> None:
    section = CODECS[number].compress(b"two apples, " * 100)
    assert DecompressionBudget(1 << 20, 1 << 20).decompressed(number, section) == b"two apples, " * 100


@cases("number", CODECS)
def test_a_codec_reads_what_clients_of_magic_0_wrote(number: int) -> None:
    section = CODECS[number].as_magic_0(CODECS[number].compress(b"two apples, " * 100))
    assert DecompressionBudget(1 << 20, 1 << 20).decompressed(number, section, magic=0) == b"two apples, " * 100


def test_an_unknown_codec_has_a_name() -> None:
    assert codec_name(7) == "unknown(7)"


@cases("number", INTO)
def test_a_section_in_a_buffer_costs_and_gives_the_same(number: int) -> None:
    chance = random.Random(number)
    for size in (0, 1, 7, 3000, 70_000):
        plain = chance.randbytes(7) * (size // 7)
        section = CODECS[number].compress(plain)
        some, other = frame_budget(), frame_budget()
        out = np.empty(size + 5, np.uint8)
        assert some.decompressed_into(number, memoryview(section), out) == len(plain)
        assert (out[: len(plain)].tobytes(), vars(some)) == (other.decompressed(number, section), vars(other))


@cases("number", INTO)
def test_a_section_that_does_not_fit_or_is_damaged_costs_nothing_yet(number: int) -> None:
    budget, unused = frame_budget(), frame_budget()
    section = CODECS[number].compress(b"wide " * 100)
    for data, size in ((section, 499), (section[:-3], 900), (b"\xff" * 20, 900)):
        assert budget.decompressed_into(number, memoryview(data), np.empty(size, np.uint8)) is None
        assert vars(budget) == vars(unused)


PLAIN = b"two apples, " * 100


@cases("number", INTO)
def test_a_section_may_be_as_large_as_each_limit_and_no_larger(number: int) -> None:
    section, size = CODECS[number].compress(PLAIN), len(PLAIN)
    packed = replace(DEFAULT, packed_size=size, packed_ratio=0)
    for limits in ((size, 2 * size), (2 * size, size), (2 * size, 2 * size, packed)):
        assert DecompressionBudget(*limits).decompressed(number, section) == PLAIN
    less = replace(packed, packed_size=size - 1)
    for limits in ((size - 1, 2 * size), (2 * size, size - 1), (2 * size, 2 * size, less)):
        with pytest.raises(TooLargeError, match="larger than 1,199 bytes once decompressed"):
            DecompressionBudget(*limits).decompressed(number, section)


@cases("number", INTO)
def test_the_bytes_of_a_section_on_the_wire_allow_as_many_times_more(number: int) -> None:
    section = CODECS[number].compress(PLAIN)
    ratio = -(-len(PLAIN) // len(section))
    for bounds, fits in ((ratio, True), (ratio - 1, False)):
        budget = DecompressionBudget(1 << 20, 1 << 20, replace(DEFAULT, packed_size=0, packed_ratio=bounds))
        into = np.empty(2 * len(PLAIN), np.uint8)
        assert (budget.decompressed_into(number, memoryview(section), into) is not None) == fits
    with pytest.raises(TooLargeError):
        DecompressionBudget(1 << 20, 1 << 20, replace(DEFAULT, packed_size=0, packed_ratio=ratio - 1)).decompressed(
            number, section
        )


def after(total: int, number: int, section: bytes) -> int:
    """The largest section that a frame may still have behind one."""
    budget = DecompressionBudget(total, total)
    with contextlib.suppress(DecompressionError):
        budget.decompressed(number, section)
    gzip = CODECS[CompressionType.GZIP]
    fits = 0
    for bit in reversed(range(total.bit_length())):
        try:
            copy(budget).decompressed(CompressionType.GZIP, gzip.compress(bytes(fits + (1 << bit))))
        except TooLargeError:
            continue
        fits += 1 << bit
    return fits


@cases("number", INTO)
def test_each_section_is_charged_what_it_became_or_could_have_become(number: int) -> None:
    section = CODECS[number].compress(PLAIN)
    total = 1 << 16
    damaged = b"\xff" * 40
    assert after(total, number, section) == total - len(PLAIN)
    assert after(total, number, damaged) == total - USUAL_RATIO * len(damaged)
    assert after(total, number, b"\xff" * 70) == 0
    assert after(total, number, CODECS[number].compress(bytes(total + 1))) == 0


def test_a_frame_may_have_as_many_records_as_its_limits_and_its_bytes_allow() -> None:
    for bounds in (replace(DEFAULT, frame_records=30), replace(DEFAULT, frame_records=100, packed_records=10)):
        budget = DecompressionBudget(1, 1, bounds)
        budget.admit(10, 5)
        budget.admit(20, 15)
        refused = copy(budget)
        with pytest.raises(DecompressionError, match="0 bytes hold more records"):
            refused.admit(1, 0)
    budget = DecompressionBudget(1, 1, replace(DEFAULT, packed_records=10))
    for records in (16, 15):
        with pytest.raises(DecompressionError) if records == 16 else contextlib.nullcontext():
            copy(budget).admit(records, 5)


@cases(("records", "packed"), [(30, 100), (100, 30)])
def test_a_frame_may_have_as_many_headers_as_it_may_have_records(records: int, packed: int) -> None:
    budget = DecompressionBudget(1, 1, replace(DEFAULT, frame_records=records, packed_records=packed))
    budget.admit_parts(10, 7)
    assert budget.parts == 20
    with pytest.raises(LimitError, match="more headers than one frame may have"):
        copy(budget).admit_parts(21, 7)
    budget.admit_parts(20, 7)
    assert budget.parts == 0
    with pytest.raises(LimitError):
        budget.admit_parts(1, 7)


def test_a_frame_may_have_as_many_nodes_as_its_limit() -> None:
    budget = DecompressionBudget(1, 1, replace(DEFAULT, tree_nodes=30))
    budget.admit_nodes(10, 7)
    budget.admit_nodes(20, 7)
    with pytest.raises(LimitError, match="more than 30 fields"):
        budget.admit_nodes(1, 7)


@cases(("size", "blocks"), [(1 << 15, 1), ((1 << 15) + 1, 2), (1 << 16, 2), ((1 << 16) + 1, 3)])
def test_snappy_has_blocks_as_java_clients_write_them(size: int, blocks: int) -> None:
    made, found, at = CODECS[CompressionType.SNAPPY].compress(bytes(size)), 0, 16
    while at < len(made):
        at += 4 + int.from_bytes(made[at : at + 4], "big")
        found += 1
    assert (found, at) == (blocks, len(made))

"""Codecs: one table, and everything that dispatches on a codec covers it."""

import random

import numpy as np

from dissector.export.redaction.compress_to_size import COMPRESSORS
from dissector.protocol.records.compression import CODEC_MASK, CODECS, INTO, DecompressionBudget, codec_name
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.schema.field_enums import CompressionType
from dissector.tables.schemas import TABLES
from tests.cases import cases


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

"""Puts records into stored JSON: the kernel writes them from the bytes that a packed `records` field has (`packing`).

Invariant: the text is that of `packing.unpacked`. A field that the kernel leaves to Python is written by Python; where
anything else stands beside such bytes, the text is not understood.
"""

import heapq
import re
from binascii import unhexlify
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from operator import itemgetter
from typing import Final

import numpy as np
import orjson

from dissector.bulk.decompressed_sections import DecompressedSections
from dissector.core.arrays import Int64
from dissector.core.grouping import cuts
from dissector.core.json_text import dumps
from dissector.protocol.codec.json_program import JsonProgram, Mark
from dissector.protocol.codec.plan import StructPlan, plan, struct_of
from dissector.protocol.kernel.json_messages import (
    JsonMessages,
    NamedTopics,
    Outcome,
    compressed_sections,
    section_view,
)
from dissector.protocol.kernel.shredding import FrameMemory
from dissector.protocol.records.to_json import records_object
from dissector.tables.packing import unpacked_field

PACKED: Final = b'"bytes":"'
"""What a text with packed records has; in values of texts, the quotes would be escaped."""
MOST_BYTES: Final = 4 << 20
"""Bytes of records that are written together, unless one field has more."""
_HEADS: Final = rb'(?:\{"base_offset":-?\d+,"batch_length":-?\d+,"compression":"\w+","records_count":-?\d+\},?)*'
_BEGIN_OF_FIELD: Final = rb'\{"size":\d+,"batches":\['
_FIELD: Final = re.compile(
    _BEGIN_OF_FIELD + rb"(?:" + _HEADS + rb"|(?P<other>(?:(?!" + _BEGIN_OF_FIELD + rb').)*?))\],"bytes":"([^"]*)"\}'
)
"""A packed field; as `other` what has more of a batch than its sizes."""
_NO_TOPICS: Final = NamedTopics.of({}, lambda _: False, "")
_INDEX: Final = bytes(4)
_BEGIN: Final = len('{"time_ns":0,"size":,"body":{"index":0,"records":')
_END: Final = len(b"}}")


def is_understood(text: bytes) -> bool:
    """Return whether all that is packed in a text is fields that `with_records` finds."""
    return text.count(PACKED) == sum(1 for _ in _FIELD.finditer(text))


def with_records(text: bytes, others: Iterable[tuple[int, int, bytes]] = ()) -> Iterator[bytes | memoryview]:
    """Yield a text of messages in pieces, with records in place of packed fields, and `others` in place of what is from
    a start to an end, ascending."""
    fields = list(_FIELD.finditer(text))
    records = zip(fields, _records([b"" if field["other"] else unhexlify(field[2]) for field in fields]), strict=True)
    found = ((field.start(), field.end(), _other(field[0]) if field["other"] else each) for field, each in records)
    at = 0
    for start, end, piece in heapq.merge(others, found, key=itemgetter(0)):
        if start < at:  # a field of what is replaced
            continue
        yield text[at:start]
        yield piece
        at = end
    yield text[at:]


def _other(field: bytes) -> bytes:
    """Return the JSON of a field of which a part is decoded already."""
    return dumps(unpacked_field(orjson.loads(field)))


def _records(fields: Sequence[bytes]) -> Iterator[bytes | memoryview]:
    """Yield the JSON of `records` fields."""
    edges = cuts(np.array([len(each) for each in fields], np.int64), MOST_BYTES).tolist()
    for start, end in pairwise([0, *edges, len(fields)]):
        yield from _written(fields[start:end])


def _written(fields: Sequence[bytes]) -> list[bytes | memoryview]:
    """Return the same of some fields, each of which the kernel reads as a partition of a Produce."""
    memory = np.frombuffer(b"".join(each for field in fields for each in _framed(field)), np.uint8)
    sizes = np.array([len(field) + 2 * len(_INDEX) for field in fields], np.int64)
    addresses = memory.ctypes.data + np.cumsum(sizes) - sizes
    messages = JsonMessages(shows_secrets=True)  # what may be one is masked in the tables
    found: list[bytes | memoryview | None] = [None] * len(fields)

    def write(places: Int64, plain: DecompressedSections | None) -> Int64:
        """Write some fields; return the places of those that have compressed records."""
        frames = FrameMemory(addresses[places].astype(np.uint64), sizes[places], memory)
        programs = np.tile(np.array(_program().addresses, np.uint64), (len(places), 1))
        sections = None if plain is None else plain.sections()
        written = messages.write(frames, np.zeros(len(places), np.int64), programs, _NO_TOPICS, 0, sections)
        written.outcomes[written.holes["row"]] = Outcome.CAREFUL  # such as message sets: their text is not whole
        text = messages.text.data
        for place, start, end, outcome in zip(
            places.tolist(), written.starts.tolist(), written.ends.tolist(), written.outcomes.tolist(), strict=True
        ):
            if outcome == Outcome.WRITTEN:
                found[place] = text[start + _BEGIN + len(str(sizes[place])) : end - _END]
        left: Int64 = places[written.outcomes == Outcome.COMPRESSED]
        return left

    plain, some = DecompressedSections(), list[int]()
    for place in write(np.arange(len(fields)), None).tolist():
        data = np.uint64(addresses[place] + 2 * len(_INDEX))
        of = compressed_sections(np.array([data]), np.array([len(fields[place])]))
        if plain.add([
            (codec, section_view(at, size))
            for codec, at, size in zip(of.codec.tolist(), of.address.tolist(), of.size.tolist(), strict=True)
        ]):  # fmt: skip
            some.append(place)
        if plain.is_full:
            write(np.array(some, np.int64), plain)
            plain.clear()
            some = []
    if some:
        write(np.array(some, np.int64), plain)
    return [dumps(records_object(field)) if text is None else text for field, text in zip(fields, found, strict=True)]


def _framed(field: bytes) -> tuple[bytes, bytes, bytes]:
    return _INDEX, len(field).to_bytes(4, "big"), field


@cache
def _program() -> JsonProgram:
    """Return what writes a partition of a Produce: its index and its records."""
    found: StructPlan | None = plan("ProduceRequest", 3)
    for name in ("topic_data", "partition_data"):
        assert found is not None, "both are arrays of structures"
        found = struct_of(next(field.type for field in found.fields if field.name == name))
    assert found is not None
    return JsonProgram([("body", found)], lambda _: Mark.NONE)

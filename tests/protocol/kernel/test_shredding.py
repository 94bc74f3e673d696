"""The kernel reads what the reader in Python reads, and fails where it fails."""

import pickle
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.codec.json_program import JsonProgram, Mark
from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.program import Program, message_program
from dissector.protocol.codec.reader import DECODE_ERRORS, UNKNOWN_TAGS, reader
from dissector.protocol.codec.tracer import Tracer
from dissector.protocol.codec.writer import write
from dissector.protocol.embedded.secrets import is_clean
from dissector.protocol.kernel.shredding import Arena, FrameMemory, FramePieces, Shredded, ShredError
from dissector.protocol.records.batch import HEADER, Batch
from dissector.protocol.records.entries import RecordsEntryKind, split_entries
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.records.tracing import RecordTracer
from dissector.protocol.schema.index import IndexEntry
from dissector.protocol.schema.loader import entries
from dissector.protocol.tree import Node
from tests.cases import cases
from tests.protocol.kernel.columns_to_values import ColumnReader
from tests.protocol.random_messages import make

MESSAGES = [entry for entry in entries() if entry.valid_versions]
STRICTER = (ShredError.REPEATED_TAG, ShredError.TOO_DEEP)
"""What the kernel leaves to the reader, which reads it."""


def memory(frames: list[bytes]) -> FrameMemory:
    joined = np.frombuffer(b"".join(frames) or b"\0", np.uint8)
    sizes = np.array([len(each) for each in frames], np.int64)
    return FrameMemory.of_buffer(joined, np.cumsum(sizes) - sizes, sizes)


def shred_all(program: Program, frames: list[bytes]) -> list[Shredded]:
    wanted = program.wanted(values=range(len(program.columns)))
    return list(Arena().shred(memory(frames), program, wanted, 0))


def comparable(values: object) -> object:
    """Replace unknown tagged fields by their number, as the columns have it, and forget the order of tagged fields."""
    if isinstance(values, dict):
        return sorted(
            (k, len(v) if k == UNKNOWN_TAGS and isinstance(v, list) else comparable(v)) for k, v in values.items()
        )
    return [comparable(each) for each in values] if isinstance(values, list) else values


def check(name: str, version: int, data: bytes) -> None:
    layout = plan(name, version)
    program = Program([("body", layout)])
    [shredded] = shred_all(program, [data])
    error = ShredError(int(shredded.errors[0]))
    try:
        values, end = reader(name, version)(data, 0, len(data))
    except DECODE_ERRORS:
        assert error not in (ShredError.NONE, ShredError.TRAILING)
        return
    if end != len(data):
        assert error in (ShredError.TRAILING, *STRICTER)
        assert error != ShredError.TRAILING or shredded.error_at[0] == end
        return
    if error in STRICTER:
        return
    assert error == ShredError.NONE
    columns = ColumnReader(program, shredded, data)
    assert repr(comparable(columns.values(layout))) == repr(
        comparable(values)
    )  # as text: no number equals itself that is none
    assert columns.is_used_up()


@pytest.mark.long
@pytest.mark.slow
@cases("entry", MESSAGES, ids=lambda entry: entry.name)
def test_made_messages_have_the_values_of_the_reader(entry: IndexEntry) -> None:
    for version in entry.valid_versions:
        for seed in range(3):
            _, raw = make(plan(entry.name, version), random.Random(f"{entry.name} {version} {seed}"))
            check(entry.name, version, raw)


@given(entry=st.sampled_from(MESSAGES), data=st.data())
def test_damaged_messages_are_read_as_the_reader_reads_them(entry: IndexEntry, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(list(entry.valid_versions)))
    _, raw = make(plan(entry.name, version), random.Random(data.draw(st.integers(0, 1000))))
    damaged = bytearray(raw)
    places = st.integers(0, max(0, len(damaged) - 1))
    for at, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=4)):
        if damaged:
            damaged[at] = byte
    check(entry.name, version, bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))


@given(entry=st.sampled_from(MESSAGES), junk=st.binary(max_size=200), data=st.data())
def test_junk_is_read_as_the_reader_reads_it(entry: IndexEntry, junk: bytes, data: st.DataObject) -> None:
    check(entry.name, data.draw(st.sampled_from(list(entry.valid_versions))), junk)


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", ""]), st.lists(st.integers(0, 2), max_size=3)), max_size=3), st.data()
)
def test_equal_keys_mean_equal_values_of_their_fields(topics: list[tuple[str, list[int]]], data: st.DataObject) -> None:
    program = Program([("body", plan("OffsetFetchRequest", 7))])
    key = [n for n, column in program.values if column.path[-1] in ("name", "partition_indexes")]
    bodies = []
    for _ in range(data.draw(st.integers(1, 30))):
        few = data.draw(st.lists(st.sampled_from(topics or [("", [])]), max_size=3))
        named = [{"name": name, "partition_indexes": partitions} for name, partitions in few]
        group = data.draw(st.sampled_from(["g", "h", "longer"]))
        bodies.append((named, write("OffsetFetchRequest", 7, {"group_id": group, "topics": named})))
    [shredded] = Arena().shred(memory([raw for _, raw in bodies]), program, program.wanted(keys=key), 0)
    numbered = shredded.key_numbers()
    for (one, _), number in zip(bodies, numbered.numbers.tolist(), strict=True):
        for (other, _), other_number in zip(bodies, numbered.numbers.tolist(), strict=True):
            assert (one == other) == (number == other_number)
    assert numbered.rows.tolist() == [numbered.numbers.tolist().index(n) for n in range(len(numbered.keys))]


def in_pieces(frames: list[bytes], sizes: st.DataObject) -> FrameMemory:
    """Frames cut at random, but for some that are in one piece, with room of any content."""
    whole = memory(frames)
    cuts = [sorted(sizes.draw(st.sets(st.integers(1, max(1, len(each) - 1)), max_size=5))) for each in frames]
    edges = [[0, *(cut for cut in some if cut < len(each)), len(each)] for some, each in zip(cuts, frames, strict=True)]
    starts = [int(address) + edge for address, of in zip(whole.addresses, edges, strict=True) for edge in of[:-1]]
    widths = [stop - start for of in edges for start, stop in pairwise(of)]
    stop = np.cumsum([len(of) - 1 for of in edges])
    first = np.append(0, stop[:-1])
    room = np.full(int(whole.sizes.sum()) + 1, 0xAA, np.uint8)
    placed = FrameMemory.of_buffer(room, np.cumsum(whole.sizes) - whole.sizes, whole.sizes)
    is_whole = np.array([len(of) == 2 for of in edges])
    pieces = FramePieces(
        np.array(starts, np.uint64), np.array(widths, np.int64), first, np.where(is_whole, first, stop), whole.owner
    )
    return FrameMemory(np.where(is_whole, whole.addresses, placed.addresses), whole.sizes, (whole, placed), pieces)


@given(entry=st.sampled_from(MESSAGES), data=st.data())
def test_frames_in_pieces_are_read_as_those_in_one_piece(entry: IndexEntry, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(list(entry.valid_versions)))
    program = Program([("body", plan(entry.name, version))])
    seeds = data.draw(st.lists(st.integers(0, 1000), min_size=1, max_size=4))
    raws = [make(plan(entry.name, version), random.Random(seed))[1] for seed in seeds]
    frames = [raw[: data.draw(st.integers(len(raw) // 2, len(raw)))] for raw in raws]
    columns = range(len(program.columns))
    for wanted in (program.wanted(values=columns), program.wanted(keys=columns), program.wanted(outlines=columns)):
        [one] = Arena().shred(memory(frames), program, wanted, 0)
        [other] = Arena().shred(in_pieces(frames, data), program, wanted, 0)
        assert [*map(list, one.key_numbers())] == [*map(list, other.key_numbers())]
        for read in (lambda part: part.errors, lambda part: part.unclean):
            assert read(one).tolist() == read(other).tolist()
        for column in columns:
            assert [each.tolist() for each in one.column(column)] == [each.tolist() for each in other.column(column)]


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=4), st.data())
def test_of_records_in_pieces_the_first_header_is_there_and_of_texts_all(
    made: list[bytes], data: st.DataObject
) -> None:
    parts = [{"index": n, "records": records} for n, records in enumerate(made)]
    raw = write("ProduceRequest", 3, {"topic_data": [{"name": "a topic" * 9, "partition_data": parts}]})
    program = Program([("body", plan("ProduceRequest", 3))])
    fields = [n for n, column in program.values if column.name in ("name", "records")]
    frames = in_pieces([raw], data)
    [shredded] = Arena().shred(frames, program, program.wanted(values=fields), 0)
    for field in fields:
        most = HEADER.size if program.columns[field].name == "records" else len(raw)
        values, positions, _ = shredded.column(field)
        for size, at in zip(values.tolist(), positions.tolist(), strict=True):
            there = min(size, most)
            assert frames.data(0)[at : at + there] == raw[at : at + there]


def numbers_of_outlines(name: str, version: int, outlined: set[str], raws: list[bytes]) -> list[int]:
    """Number messages by the outlines of some fields and all values of the others."""
    program = Program([("body", plan(name, version))])
    outlines = [n for n, column in program.values if column.name in outlined]
    keys = [n for n, column in program.values if column.name not in outlined]
    wanted = program.wanted(keys=keys, outlines=outlines)
    [shredded] = Arena().shred(memory(raws), program, wanted, 0)
    return shredded.key_numbers().numbers.tolist()


def check_numbers(shown: list[object], numbers: list[int]) -> None:
    """Two messages have one number if and only if they show the same."""
    for one, number in zip(shown, numbers, strict=True):
        for other, other_number in zip(shown, numbers, strict=True):
            assert (one == other) == (number == other_number)


@given(st.lists(st.tuples(st.lists(st.integers(-2, 2), max_size=2), st.integers(-2, 2)), min_size=1, max_size=20))
def test_the_outline_of_a_number_is_whether_and_how_it_is_negative(made: list[tuple[list[int], int]]) -> None:
    topics = [[{"name": "t", "partition_indexes": indexes}] * 2 for indexes, _ in made]
    raws = [write("OffsetFetchRequest", 7, {"group_id": "g", "topics": each}) for each in topics]
    shown: list[object] = [[min(n, 0) for n in indexes] for indexes, _ in made]
    check_numbers(shown, numbers_of_outlines("OffsetFetchRequest", 7, {"partition_indexes"}, raws))
    raws = [write("FindCoordinatorResponse", 0, {"node_id": n, "port": len(some)}) for some, n in made]
    shown = [(min(n, 0), len(some)) for some, n in made]
    check_numbers(shown, numbers_of_outlines("FindCoordinatorResponse", 0, {"node_id"}, raws))


def a_batch(base_offset: int, attributes: int, producer_id: int, records: bytes) -> bytes:
    numbers = (base_offset, HEADER.size - 12 + len(records), 0, 2, 0, attributes, 0, 0, 0, producer_id, 0, 0, 1)
    return HEADER.pack(*numbers) + records


def a_message(magic: int, size: int) -> bytes:
    return bytes(8) + (14 + size).to_bytes(4, "big") + bytes(4) + bytes([magic]) + bytes(9 + size)


def outline(records: bytes) -> list[object]:
    """What of a `records` field counts."""
    found: list[object] = []
    for part in split_entries(records):
        data = records[part.start : part.end]
        if part.kind is RecordsEntryKind.BATCH:
            batch = Batch.read(data)
            found.append((part.kind, batch.attributes, batch.producer_id))
        else:
            found.append((part.kind, data[16] if part.kind is RecordsEntryKind.MESSAGE else 0))
    return found


FEW = st.sampled_from([-1, 0, 7])
ENTRIES = st.one_of(
    st.builds(a_batch, FEW, st.sampled_from([0, 1]), FEW, st.sampled_from([b"", b"records"])),
    st.builds(a_message, st.integers(0, 1), st.integers(8, 9)), st.binary(max_size=20),
)  # fmt: skip
SOME_RECORDS = st.none() | st.lists(ENTRIES, max_size=3).map(b"".join)


@given(st.lists(st.lists(SOME_RECORDS, max_size=2), min_size=1, max_size=12))
def test_the_outline_of_records_is_what_the_headers_of_batches_show(made: list[list[bytes | None]]) -> None:
    raws = [
        write("ProduceRequest", 3, {"topic_data": [{"name": "t", "partition_data": [{"records": r} for r in fields]}]})
        for fields in made
    ]
    shown: list[object] = [[outline(each or b"") for each in fields] for fields in made]
    check_numbers(shown, numbers_of_outlines("ProduceRequest", 3, {"records"}, raws))


def test_columns_that_are_full_are_given_in_parts() -> None:
    program = Program([("body", plan("ApiVersionsResponse", 3))])
    keys = [{"api_key": n, "min_version": 0, "max_version": n % 7} for n in range(500)]
    raw = write("ApiVersionsResponse", 3, {"api_keys": keys})
    damaged = raw[:-1]
    frames = [raw, damaged] * 40
    [number] = [n for n, column in program.values if column.path == ("body", "api_keys", "max_version")]
    found = [0] * len(frames)
    parts = rows = 0
    for part in Arena().shred(memory(frames), program, program.wanted(values=[number], keys=[number]), 0):
        column = part.column(number)
        parts += 1
        for row, value in zip(column.rows.tolist(), column.values.tolist(), strict=True):
            found[part.first + row] += value
        numbered = part.key_numbers()
        assert {n for n, error in zip(numbered.numbers.tolist(), part.errors.tolist(), strict=True) if error} <= {-1}
        rows += part.stop - part.first
    assert parts > 1
    assert rows == len(frames)
    assert found == [sum(n % 7 for n in range(500)), 0] * 40


@pytest.mark.long
@pytest.mark.slow
@cases("entry", MESSAGES, ids=lambda entry: entry.name)
def test_what_is_found_clean_is_clean(entry: IndexEntry) -> None:
    for version in entry.valid_versions:
        program = Program([("body", plan(entry.name, version))])
        if any(column.type == "records" for column in program.columns):
            continue  # what is in them is not checked
        chance = random.Random(f"clean {entry.name} {version}")
        frames = [make(plan(entry.name, version), chance)[1] for _ in range(6)]
        [shredded] = Arena().shred(memory(frames), program, program.wanted(checked=True), 0)
        for frame, error, unclean in zip(frames, shredded.errors, shredded.unclean, strict=True):
            root, records = Node("", "", "STRUCT", 0, len(frame)), RecordTracer([], frame_budget())
            Tracer(frame, 0, len(frame), records).struct(plan(entry.name, version), root)
            texts = [node.value for node in root.walk() if isinstance(node.value, str)]
            assert error or unclean == (not is_clean(root) or not "".join(texts).isascii())


def test_what_was_in_a_checkpoint_reads_its_own_memory() -> None:
    """A program is made again of the message that it is of: one that somebody wrote would lead the kernel anywhere."""
    program = message_program("ResponseHeader", 0, "ApiVersionsResponse", 3)
    wanted = program.wanted(values=range(len(program.columns)))
    body = write("ApiVersionsResponse", 3, {"api_keys": [{"api_key": 3, "min_version": 0, "max_version": 9}]})
    frames = [bytes(4) + body]
    copy, what, room = pickle.loads(pickle.dumps((program, wanted, Arena())))
    assert copy.address == copy.code.ctypes.data
    assert what.address == what.columns.ctypes.data != wanted.address
    [restored], [part] = room.shred(memory(frames), copy, what, 0), shred_all(program, frames)
    for number, _ in program.values:
        assert restored.column(number).values.tolist() == part.column(number).values.tolist()
    with pytest.raises(TypeError, match="of no message"):
        pickle.dumps(JsonProgram([("body", plan("ApiVersionsResponse", 3))], lambda _: Mark(0)))


def test_what_is_wanted_of_another_program_is_refused() -> None:
    program, other = (Program([("body", plan(f"ApiVersions{side}", 3))]) for side in ("Request", "Response"))
    with pytest.raises(ValueError, match="are wanted of a program with"):
        next(Arena().shred(memory([bytes(8)]), other, program.wanted(), 0))

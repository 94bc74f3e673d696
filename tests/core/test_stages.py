"""The contract of `core/stage.py`, of each stage and of stages joined in a chain."""

import io
import pickle
import random
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.arrays import Int64
from dissector.core.batches import NOWHERE, FrameBatch, PacketBatch, RunBatch
from dissector.core.limits import DEFAULT, Limits
from dissector.core.stage import NOTHING_PENDING, Position, Stage, StageChain
from dissector.core.store import Store
from dissector.framing import Framer
from dissector.index.indexer import Indexer
from dissector.transport import Transport
from tests.cases import cases
from tests.framing.test_framer import Anything
from tests.traffic import Mangling, Packet, conversation, ethernet, exchanges, manglings
from tests.transport.reading import batch, part

NONE: Int64 = np.zeros(0, np.int64)
PACKETS = conversation(exchanges(12, pipelined=3, size=60), segment=40)
TIGHT = Limits(out_of_order_bytes=200, frame_size=300, resync_bytes=100, undecided_bytes=100)
Cuts = list[int]
cuts_of_packets: st.SearchStrategy[Cuts] = st.lists(st.integers(0, 80), max_size=8)


class Frame(NamedTuple):
    """A row of a `FrameBatch`, with its bytes; ``?`` for those that are missing."""

    direction: int
    start: int
    kind: int
    size: int
    packet: int
    data: bytes


class Captured:
    """Packets in a store, as batches between cuts."""

    def __init__(self, packets: list[Packet], store: Store, *, first: int = 0) -> None:
        frames = [ethernet(packet) for packet in packets]
        self._whole = batch(frames, base=store.add(b"".join(frames) or b"\0"), first=first)

    def batches(self, cuts: Cuts) -> Iterable[PacketBatch]:
        count = len(self._whole)
        edges = sorted({0, count, *(cut % (count + 1) for cut in cuts)})
        return (part(self._whole, *edge) for edge in pairwise(edges))


def frames_of(batches: Iterable[FrameBatch], store: Store) -> list[Frame]:
    out = []
    for frames in batches:
        for n in range(len(frames)):
            pieces = range(int(frames.piece[n]), int(frames.piece[n + 1]))
            places = [(int(frames.piece_address[p]), int(frames.piece_size[p])) for p in pieces]
            data = b"".join(b"?" * size if at == NOWHERE else bytes(store.read(at, size)) for at, size in places)
            direction, start, kind, size, packet = (
                int(column[n]) for column in (frames.direction, frames.start, frames.kind, frames.size, frames.packet)
            )
            out.append(Frame(direction, start, kind, size, packet, data))
    return out


def output(stage: Stage[Any, Any], batches: Iterable[Any]) -> list[Any]:
    """All that comes out of a stage."""
    out = []
    for each in batches:
        out += [*stage.feed(each), *stage.end(NONE)]
    return [*out, *stage.flush()]


def chain_of(store: Store, limits: Limits = DEFAULT) -> StageChain:
    return StageChain(Transport(store, limits), Framer(store, Anything(), limits))


def framed(packets: list[Packet], cuts: Cuts) -> list[Frame]:
    store = Store()
    captured = Captured(packets, store)
    return sorted(frames_of(output(chain_of(store), captured.batches(cuts)), store))


def runs_of(packets: list[Packet], store: Store) -> list[RunBatch]:
    return output(Transport(store, DEFAULT), Captured(packets, store).batches([]))


def rows_of(runs: RunBatch, low: int, high: int) -> RunBatch:
    return RunBatch(**{name: getattr(runs, name)[low:high] for name in RunBatch.__slots__})


@given(mangle=manglings(loss=True), cuts=cuts_of_packets)
def test_frames_of_a_chain_do_not_depend_on_batches(mangle: Mangling, cuts: Cuts) -> None:
    packets = mangle(PACKETS)
    assert framed(packets, cuts) == framed(packets, [])


@given(mangle=manglings(loss=True), cuts=st.lists(st.integers(0, 200), max_size=8))
def test_frames_do_not_depend_on_batches_of_runs(mangle: Mangling, cuts: Cuts) -> None:
    store = Store()
    for runs in runs_of(mangle(PACKETS), store):
        edges = sorted({0, len(runs), *(cut % (len(runs) + 1) for cut in cuts)})
        parts = [rows_of(runs, low, high) for low, high in pairwise(edges)]
        whole = frames_of(output(Framer(store, Anything(), DEFAULT), [runs]), store)
        assert sorted(frames_of(output(Framer(store, Anything(), DEFAULT), parts), store)) == sorted(whole)


@given(mangle=manglings(loss=False), cuts=cuts_of_packets)
def test_rows_of_the_index_do_not_depend_on_batches(mangle: Mangling, cuts: Cuts) -> None:
    packets = mangle(PACKETS)
    assert indexed(packets, cuts) == indexed(packets, [])


def indexed(packets: list[Packet], cuts: Cuts) -> list[tuple[int, ...]]:
    """Kind, correlation id and packet of every row, once all three stages are flushed."""
    store = Store()
    transport = Transport(store, DEFAULT)
    indexer = Indexer(store, transport.connections, DEFAULT)
    framer = Framer(store, indexer.detector, DEFAULT)
    assert not output(StageChain(transport, framer, indexer), Captured(packets, store).batches(cuts))
    indexer.sort_rows()
    table = indexer.table
    columns = (table.kind, table.correlation_id, table.packet)
    return list(zip(*(column.values.tolist() for column in columns), strict=True))


@given(mangle=manglings(loss=True), cuts=cuts_of_packets)
def test_what_a_stage_holds_is_bounded_by_limits(mangle: Mangling, cuts: Cuts) -> None:
    store = Store()
    transport, framer = Transport(store, TIGHT), Framer(store, Anything(), TIGHT)
    chain = StageChain(transport, framer)
    for packets in Captured(mangle(PACKETS), store).batches(cuts):
        for _ in (*chain.feed(packets), *chain.end(NONE)):
            pass
        assert transport.held_bytes <= 2 * TIGHT.out_of_order_bytes
        assert framer.held_bytes <= 2 * (4 + TIGHT.frame_size)
        assert chain.held_bytes == chain.held_regions()[1].sum()
    for _ in chain.flush():
        pass
    assert chain.held_bytes == 0
    assert chain.oldest_pending() == NOTHING_PENDING


def test_the_oldest_pending_packet_is_the_first_that_waits_in_any_stage() -> None:
    store = Store()
    chain = chain_of(store)
    late = [packet for number, packet in enumerate(PACKETS) if number != 3]
    for packets in Captured(late[:6], store).batches([]):
        for _ in (*chain.feed(packets), *chain.end(NONE)):
            pass
    assert chain.oldest_pending() == Position(2, 2_000_000)
    assert chain.oldest_pending(after_ns=2_000_000) == Position(4, 4_000_000)
    assert chain.oldest_pending(after_ns=9_000_000) == NOTHING_PENDING


@given(mangle=manglings(loss=True), at=st.integers(0, 80))
def test_a_stage_goes_on_where_it_is_unpickled_with_the_bytes_that_it_holds(mangle: Mangling, at: int) -> None:
    packets = mangle(PACKETS)
    at %= len(packets) + 1
    store = Store()
    chain = chain_of(store)
    found = []
    for each in Captured(packets[:at], store).batches([]):
        found += frames_of([*chain.feed(each), *chain.end(NONE)], store)
    chain, store = restored(chain, store)
    found += frames_of(output(chain, Captured(packets[at:], store, first=at).batches([])), store)
    assert sorted(found) == framed(packets, [])


def restored(chain: StageChain, store: Store) -> tuple[StageChain, Store]:
    """A pickled chain, with a store that has the bytes held and no others."""
    other = Store.of(store.excerpt(*chain.held_regions()))
    return unpickled(pickled(chain, store), other), other


def pickled(state: object, store: Store) -> bytes:
    """What holds stages as bytes, without their store."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: object) -> str | None:
            return "store" if value is store else None

    out = io.BytesIO()
    Pickler(out).dump(state)
    return out.getvalue()


def unpickled(data: bytes, store: Store) -> Any:
    """The same with another store."""

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, _: str) -> Store:
            return store

    return Unpickler(io.BytesIO(data)).load()


@cases("seed", range(3))
def test_connections_that_end_leave_nothing_behind(seed: int) -> None:
    chance = random.Random(seed)
    lossy = [packet for packet in PACKETS if not packet.payload or chance.random() > 0.2]
    store = Store()
    chain = chain_of(store)
    for packets in Captured(lossy, store).batches([]):
        for _ in chain.feed(packets):
            pass
    for _ in chain.end(np.zeros(1, np.int64)):
        pass
    assert chain.held_bytes == 0

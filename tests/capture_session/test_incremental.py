"""A capture read in pieces, with checkpoints between them, has the rows of one that is read at once."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture.file_opening import open_capture
from dissector.capture.files import Reader
from dissector.capture.partition import Block, CapturePartition, block_of_rows
from dissector.capture_session import Capture
from dissector.core.limits import DEFAULT
from dissector.core.object_graph import Nodes
from dissector.core.object_graph.nodes import name_of
from dissector.core.store import Store
from dissector.exchange.to_json import exchange_object
from dissector.findings.detectors.slow_response import LEAST_SEEN, _UsualLatency
from tests.conftest import CAPTURES, PCAPS, costly, some_bundled, some_of
from tests.networks import one_connection
from tests.traffic import RST, conversation, ethernet, exchanges

Row = tuple[int, int, str]
REBALANCES = PCAPS / "groups" / "poll-timeout-kip848.pcapng.gz"
"""Has a finding that changes after its row was taken."""
BLOCK = 64
"""Packets that are read in one go: that their number makes no difference is shown elsewhere, and one by one is slow."""


def packets(path: Path) -> list[Block]:
    """The packets of a capture, a block each."""
    store = Store()
    reader = open_capture(str(path), store, lambda name, data: True)
    assert isinstance(reader, Reader)
    found = [block_of_rows(batch, np.array([row])) for batch in reader.batches() for row in range(len(batch))]
    store.release()
    reader.close()
    return found


def together(blocks: Sequence[Block]) -> Iterator[Block]:
    """The same packets in larger blocks."""
    for at in range(0, len(blocks), BLOCK):
        some = blocks[at : at + BLOCK]
        heads = np.concatenate([np.frombuffer(each.heads, "<i8").reshape(5, -1) for each in some], axis=1)
        yield Block(some[0].first, heads.tobytes(), b"".join(each.data for each in some))


def described(capture: Capture, rows: Sequence[int]) -> list[Row]:
    """Rows as anybody sees them, but for their numbers."""
    found = []
    for number in rows:
        exchange = capture.exchange(number)
        shown = exchange_object(exchange)
        del shown["number"]
        spans = capture.frames.spans(number)
        found.append(
            (
                int(capture.frames.positions(range(number, number + 1))[0][0]),
                spans[0].start if spans else -1,
                json.dumps([shown, exchange.row.info], default=str),
            )
        )
    return found


def at_once(blocks: list[Block]) -> list[Row]:
    with Capture([CapturePartition("all", together(blocks))]) as capture:
        for _ in capture.read():
            pass
        return sorted(described(capture, range(len(capture))))


def carried(blocks: list[Block], cuts: Sequence[int], *, taking: bool) -> tuple[list[Row], list[int]]:
    """The same with a checkpoint at each cut: all rows at the end, or if `taking`, final rows after each piece; and
    how many bytes each checkpoint has."""
    found: list[Row] = []
    bytes_carried: list[int] = []
    state = None
    edges = [0, *sorted(cuts), len(blocks)]
    for low, high in pairwise(edges):
        with Capture([CapturePartition("some", together(blocks[low:high]))], checkpoint=state) as capture:
            is_last = high == len(blocks)
            for _ in capture.read(sort=False) if is_last else capture.pipeline.read_available():
                pass
            if taking or is_last:
                found += described(capture, capture.incremental.take_final_rows().tolist())
            if is_last:
                break
            state = capture.incremental.checkpoint()
            bytes_carried.append(size_of(state))
    return sorted(found), bytes_carried


@pytest.mark.long
@pytest.mark.slow
@some_bundled
def test_rows_are_those_of_the_whole(bundled: Path) -> None:
    blocks = packets(bundled)
    cuts = [len(blocks) * part // 7 for part in range(1, 7)]
    whole = at_once(blocks)
    assert carried(blocks, cuts, taking=False)[0] == whole
    assert carried(blocks, cuts, taking=True)[0] == whole, "rows that are taken when they are final"


@pytest.mark.long
@pytest.mark.slow
@costly(3)
@given(st.data())
def test_a_checkpoint_may_be_made_at_any_packet(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(CAPTURES))
    blocks = packets(path)
    cuts = data.draw(st.lists(st.integers(0, len(blocks) - 1), max_size=12, unique=True))
    assert carried(blocks, cuts, taking=False)[0] == at_once(blocks)


def size_of(nodes: Nodes) -> int:
    """Bytes of a checkpoint, about as in a file of it."""
    return sum(map(len, filter(None, nodes.data))) + 4 * sum(map(len, nodes.items)) + 12 * len(nodes.kind)


def over_a_bad_network(blocks: list[Block], chance: random.Random) -> list[Block]:
    """Packets lost, in another order, twice, and renumbered."""
    left = [each for each in blocks if chance.random() > 0.05]
    for at in range(len(left) - 1):
        if chance.random() < 0.05:
            left[at], left[at + 1] = left[at + 1], left[at]
    twice = [each for one in left for each in ([one, one] if chance.random() < 0.05 else [one])]
    found = []
    for number, each in enumerate(twice):
        heads = np.frombuffer(each.heads, "<i8").reshape(5, -1).copy()
        heads[0] = number
        found.append(Block(number, heads.tobytes(), each.data))
    return found


@pytest.mark.exhaustive
@pytest.mark.slow
@costly(3)
@given(st.sampled_from(CAPTURES), st.integers(0, 1 << 32))
def test_checkpoints_of_damaged_captures_change_no_row(path: Path, seed: int) -> None:
    chance = random.Random(seed)
    blocks = over_a_bad_network(packets(path), chance)
    cuts = [chance.randrange(len(blocks)) for _ in range(8)] if blocks else []
    whole = at_once(blocks)
    assert carried(blocks, cuts, taking=False)[0] == whole
    taken = carried(blocks, cuts, taking=True)[0]
    assert [row[:2] for row in taken] == [row[:2] for row in whole], "what is inferred may differ, but no row is lost"


@pytest.mark.long
@pytest.mark.slow
def test_a_checkpoint_does_not_grow_with_what_was_read() -> None:
    """One connection without an end, many times as long as what is carried on."""
    made = [ethernet(packet) for packet in conversation(exchanges(2_000, size=400))]
    blocks = [
        Block(n, np.array([[n], [n * 1_000_000], [len(data)], [len(data)], [1]], "<i8").tobytes(), data)
        for n, data in enumerate(made)
    ]
    rows, sizes = carried(blocks, range(200, len(blocks), 200), taking=True)
    assert len(rows) == 2_000
    assert max(sizes[1:]) < 1.2 * sizes[1]
    assert max(sizes) < 200_000 < sum(len(data) for data in made) / 5


@pytest.mark.long
def test_what_is_usual_on_connections_that_have_ended_is_in_no_checkpoint() -> None:
    """Each has enough exchanges to know what is slow on it."""
    many, state, packet = 20, None, 0
    limits = replace(DEFAULT, remembered_packets=1_000)
    for piece in range(3):
        blocks = []
        for port in range(many):
            turns = conversation(exchanges(2 * LEAST_SEEN), client=("10.0.0.1", 20_000 + piece * many + port))
            end = replace(turns[-1], flags=RST, payload=b"")
            for data in map(ethernet, [*turns, end]):
                head = np.array([[packet], [packet * 1_000_000], [len(data)], [len(data)], [1]], "<i8")
                blocks.append(Block(packet, head.tobytes(), data))
                packet += 1
        with Capture([CapturePartition("some", together(blocks))], limits=limits, checkpoint=state) as capture:
            for _ in capture.pipeline.read_available():
                pass
            for _ in capture.findings.examine():
                pass
            assert len(capture.incremental.take_final_rows()) == many * 2 * LEAST_SEEN
            state = capture.incremental.checkpoint()
            remembered = len(capture.pipeline.transport.connections.open())
    assert state is not None
    kept = [kind for kind, name in zip(state.kind, state.name, strict=True) if name == name_of(_UsualLatency)]
    assert 0 < kept.count("object") <= remembered < many


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    some_of(
        [
            *(path for path in CAPTURES if path.stem.startswith("trouble")),
            PCAPS / "groups" / "poll-timeout-kip848.pcapng.gz",
        ],
        *("trouble-closed-in-flight", "trouble-rebalance-loop", "trouble-near-loss", "trouble-throttled"),
        *("trouble-slow", "trouble-retried-batch", "trouble-metadata-storm", "poll-timeout-kip848.pcapng"),
    ),
    ids=lambda path: path.stem,
)
def test_findings_are_those_of_a_capture_that_grows(path: Path) -> None:
    """The examination goes along, with what its finders remember."""
    blocks = packets(path)
    with Capture([CapturePartition("all", together(blocks))]) as capture:
        for _ in capture.read(sort=False):
            pass
        for _ in capture.findings.examine():
            pass
        begun = capture.frames.positions(range(len(capture)))[0].tolist()
        whole = sorted((begun[row], finding.code) for row, finding in capture.findings.cross_message())
    assert whole, "a trouble has its finding"
    found, state = [], None
    for low in range(0, len(blocks), 40):
        with Capture([CapturePartition("some", together(blocks[low : low + 40]))], checkpoint=state) as capture:
            is_last = low + 40 >= len(blocks)
            for _ in capture.read(sort=False) if is_last else capture.pipeline.read_available():
                pass
            for _ in capture.findings.examine():
                pass
            shown = dict(capture.findings.cross_message())
            final = capture.incremental.take_final_rows()
            begins = zip(final.tolist(), capture.frames.positions(final)[0].tolist(), strict=True)
            found += [(packet, shown[row].code) for row, packet in begins if row in shown]
            state = None if is_last else capture.incremental.checkpoint()
    assert sorted(found) == whole


@pytest.mark.long
@pytest.mark.slow
def test_segments_that_wait_for_a_late_one_are_in_checkpoints() -> None:
    """A request comes 300 packets behind its acknowledgement, in another piece of the capture."""
    one = one_connection(40001, [1] * 200, pipelined=1, segment=1400, isn=(1000, 5000))
    at = [n for n, packet in enumerate(one.packets) if packet.payload and packet.from_client][5]
    late = [*one.packets[:at], *one.packets[at + 1 : at + 300], one.packets[at], *one.packets[at + 300 :]]
    blocks = [
        Block(n, np.array([[n], [n * 1_000_000], [len(data)], [len(data)], [1]], "<i8").tobytes(), data)
        for n, data in enumerate(map(ethernet, late))
    ]
    whole = at_once(blocks)
    assert len(whole) == 200
    for cuts in ([at + 1], [at + 150], [at + 2, at + 100, at + 298, at + 301]):
        assert carried(blocks, cuts, taking=True)[0] == whole

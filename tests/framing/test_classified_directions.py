"""When directions are classified and searched, what is held until then, and what comes out."""

from collections.abc import Iterable

import numpy as np
import pytest

from dissector.core.arrays import Bool, Int64, UInt8
from dissector.core.batches import NOWHERE, FrameBatch, FrameKind, RunBatch, RunKind
from dissector.core.limits import DEFAULT, Limits
from dissector.core.store import Store
from dissector.framing import Classification, FoundFrame, FrameEvidence, FrameHeuristics, Framer
from dissector.framing.detector import LEAST_HEAD
from dissector.framing.frame_rows import FrameRow, FrameRows
from tests.cases import cases
from tests.framing.test_framer import Anything, Metadata, split
from tests.framing.test_split_rules import FRAMES, JUNK, Nothing
from tests.traffic import request, response

GAP, FRAME, UNPARSED = FrameKind.GAP, FrameKind.FRAME, FrameKind.UNPARSED


class Recording(Anything):
    """Says of each direction what it is told to, and remembers what it was asked."""

    def __init__(self, plain: bool = False, **says: Classification) -> None:
        super().__init__()
        self._plain = plain
        self.says = {int(name[1:]): answer for name, answer in says.items()}
        self.asked: list[tuple[int, bytes, bool, bool]] = []
        self.starts: list[tuple[int, int]] = []

    def classify(self, direction: int, head: bytes, *, from_start: bool, final: bool) -> Classification:
        self.asked.append((direction, head, from_start, final))
        return self.says[direction]

    def classify_starts(self, directions: Int64, heads: UInt8, sizes: Int64) -> Bool:
        assert heads.shape[1] == 64
        self.starts += list(zip(directions.tolist(), sizes.tolist(), strict=True))
        return np.full(len(directions), self._plain)

    def heuristics(self, direction: int) -> FrameHeuristics:
        return Nothing()


def feed(
    framer: Framer, store: Store, direction: int, data: bytes, *, start: int = 0, packet: int = 1, lost: bool = False
) -> list[tuple[int, int, int]]:
    """Kind, offset and size of the rows that come out with one run."""
    address = NOWHERE if lost else store.add(data)
    columns = [np.array([each]) for each in (start, address, len(data), packet, packet)]
    kind = np.array([RunKind.LOST if lost else RunKind.DATA], np.uint8)
    return rows_of([*framer.feed(RunBatch(np.array([direction]), kind, *columns)), *framer.end(np.zeros(0, np.int64))])


def rows_of(batches: Iterable[FrameBatch]) -> list[tuple[int, int, int]]:
    columns = [(each.kind.tolist(), each.start.tolist(), each.size.tolist()) for each in batches]
    return [row for each in columns for row in zip(*each, strict=True)]


@cases(
    ("start", "size", "lost", "at_once"),
    [
        (0, LEAST_HEAD, False, True),
        (0, LEAST_HEAD - 1, False, False),
        (0, LEAST_HEAD, True, False),
        (5, LEAST_HEAD, False, False),
    ],
)
def test_a_direction_is_classified_at_once_by_enough_first_bytes(
    start: int, size: int, lost: bool, at_once: bool
) -> None:
    detector, store = Recording(_0=Classification.UNDECIDED), Store()
    framer = Framer(store, detector, DEFAULT)
    feed(framer, store, 0, bytes(size), start=start, lost=lost)
    assert detector.starts == ([(0, size)] if at_once else [])
    assert detector.asked[-1] == (0, b"" if lost else bytes(size), start == 0 and not lost, False)


def test_directions_are_classified_in_the_order_of_their_packets() -> None:
    detector, store = Recording(plain=True), Store()
    framer = Framer(store, detector, DEFAULT)
    frames = [request(n) for n in range(3)]
    addresses, sizes = [store.add(each) for each in frames], list(map(len, frames))
    columns = [np.array(each) for each in ([0] * 3, addresses, sizes, [3, 1, 2], [3, 1, 2])]
    [batch] = framer.feed(RunBatch(np.array([0, 2, 4]), np.full(3, RunKind.DATA, np.uint8), *columns))
    assert [direction for direction, _ in detector.starts] == [2, 4, 0]
    assert batch.direction.tolist() == [0, 2, 4]


@cases(("size", "final"), [(99, False), (100, True)])
def test_an_undecided_direction_is_not_kafka_once_enough_of_it_is_there(size: int, final: bool) -> None:
    detector, store = Recording(_0=Classification.UNDECIDED), Store()
    framer = Framer(store, detector, Limits(undecided_bytes=100))
    feed(framer, store, 0, bytes(size))
    assert detector.asked[-1][3] == final
    assert framer.ignored(0) == (size if final else 0)
    assert framer.ignored(7) == 0


def test_who_is_no_kafka_has_a_peer_that_is_asked_for_again() -> None:
    detector, store = Recording(_0=Classification.POSSIBLE, _1=Classification.OTHER), Store()
    framer = Framer(store, detector, DEFAULT)
    feed(framer, store, 0, response(1), packet=1)
    asked = len(detector.asked)
    detector.says[0] = Classification.OTHER
    feed(framer, store, 1, response(2), packet=2)
    assert {direction for direction, *_ in detector.asked[asked:]} == {0, 1}
    assert framer.ignored(0) == framer.ignored(1) == len(response(1))


def test_who_was_taken_for_another_protocol_is_searched_once_its_peer_is_kafka() -> None:
    for plain in (False, True):
        detector, store = Recording(_1=Classification.OTHER, _0=Classification.FRAMES), Store()
        framer = Framer(store, detector, DEFAULT)
        feed(framer, store, 1, b"x" * 20, packet=1)
        assert framer.ignored(1) == 20
        detector._plain = plain
        feed(framer, store, 0, request(1), packet=2)
        feed(framer, store, 1, b"y" * 30, start=20, packet=3)
        [batch] = [each for each in framer.flush() if len(each)]
        assert (batch.direction.tolist(), batch.kind.tolist(), batch.size.tolist()) == ([1], [UNPARSED], [30])
        assert framer.ignored(1) == 20


def test_rows_of_skipped_bytes_wait_until_a_direction_is_kafka() -> None:
    for answer in (Classification.FRAMES, Classification.OTHER):
        detector, store = Recording(_1=Classification.POSSIBLE, _0=answer), Store()
        framer = Framer(store, detector, DEFAULT)
        for number in range(11):  # a hole, and bytes of which nothing is found before the next hole
            assert not feed(framer, store, 1, bytes(20), start=30 * number, packet=2 * number)
            assert not feed(framer, store, 1, bytes(10), start=30 * number + 20, packet=2 * number + 1, lost=True)
        if answer == Classification.OTHER:
            feed(framer, store, 0, request(1), packet=99)
            assert sum(len(each) for each in framer.flush()) == 0
            assert framer.ignored(1) == 11 * 30
            continue
        rows = feed(framer, store, 0, request(1), packet=99)
        rows += rows_of(framer.flush())
        of_peer = sorted(row[1:3] for row in rows if row[0] != FRAME)
        assert sum(size for _, size in of_peer) + framer.ignored(1) == 11 * 30
        assert framer.ignored(1) == of_peer[0][0] > 0
        assert len(of_peer) >= 8


@cases("client", [0, 1])
def test_a_peer_that_waits_is_asked_again_once_the_other_side_is_known(client: int) -> None:
    for answer in (Classification.FRAMES, Classification.OTHER):
        says = {f"_{client}": answer, f"_{1 - client}": Classification.UNDECIDED}
        detector, store = Recording(**says), Store()
        framer = Framer(store, detector, DEFAULT)
        feed(framer, store, 1 - client, response(1) * 2, packet=1)
        detector.says[1 - client] = Classification.FRAMES
        rows = feed(framer, store, client, b"\0", packet=2)
        size = len(response(1))
        assert rows == [(FRAME, 0, size), (FRAME, size, size)]


@cases("client", [0, 1])
def test_a_peer_that_is_only_possibly_kafka_is_asked_again_once_the_other_side_is_known(client: int) -> None:
    for answer in (Classification.FRAMES, Classification.OTHER):
        for size in (1, 30):  # too few bytes to be classified at once, and enough
            detector, store = Recording(**{f"_{client}": answer, f"_{1 - client}": Classification.POSSIBLE}), Store()
            framer = Framer(store, detector, DEFAULT)
            feed(framer, store, 1 - client, response(1), packet=1)
            detector.says[1 - client] = Classification.FRAMES
            rows = feed(framer, store, client, bytes(size), packet=2)
            assert (FRAME, 0, len(response(1))) in rows
            assert [direction for direction, *_ in detector.asked].count(client) == 1


@cases("client", [0, 1])
def test_skipped_bytes_come_out_once_the_direction_is_known_to_have_lost_its_place(client: int) -> None:
    detector, store = (
        Recording(**{f"_{client}": Classification.OTHER, f"_{1 - client}": Classification.POSSIBLE}),
        Store(),
    )
    framer = Framer(store, detector, DEFAULT)
    assert not feed(framer, store, 1 - client, bytes(20), packet=1)
    assert not feed(framer, store, 1 - client, bytes(10), start=20, packet=2, lost=True)
    assert not feed(framer, store, 1 - client, bytes(5), start=30, packet=3)
    detector.says[1 - client] = Classification.SEARCH
    assert feed(framer, store, client, b"x" * 20, packet=4) == [(UNPARSED, 0, 20), (GAP, 20, 10)]


def test_a_hole_before_the_first_frame_is_a_row() -> None:
    detector, store = Recording(_0=Classification.UNDECIDED), Store()
    framer = Framer(store, detector, Limits(undecided_bytes=100))
    assert not feed(framer, store, 0, bytes(10), packet=1, lost=True)
    detector.says[0] = Classification.FRAMES
    assert feed(framer, store, 0, request(1), start=10, packet=2) == [(GAP, 0, 10), (FRAME, 10, len(request(1)))]


def test_only_bytes_that_wait_make_a_direction_final() -> None:
    detector, store = Recording(_0=Classification.UNDECIDED), Store()
    framer = Framer(store, detector, Limits(undecided_bytes=100))
    for start, size, final in ((50, 60, False), (110, 39, False), (149, 1, True)):
        feed(framer, store, 0, bytes(size), start=start, packet=start)
        assert detector.asked[-1][3] == final


def test_a_hole_larger_than_a_row_may_be_is_many_rows() -> None:
    detector, store = Recording(plain=True), Store()
    framer = Framer(store, detector, DEFAULT)
    first, most = request(1), (1 << 31) - 1
    feed(framer, store, 0, first)
    columns = [np.array([each]) for each in (len(first), NOWHERE, 2 * most + 5, 2, 2)]
    [batch, *_] = framer.feed(RunBatch(np.array([0]), np.array([RunKind.LOST], np.uint8), *columns))
    assert batch.size.tolist() == [most, most, 5]


def test_frames_are_told_from_the_rows_between_them() -> None:
    rows = FrameRows()
    rows.add(FrameRow(0, FRAME, 0, 9, (1, 10), 1, [(100, 9)]))
    rows.add(FrameRow(0, GAP, 9, 5, (2, 20), 2, [(NOWHERE, 3), (NOWHERE, 2)]))
    rows.add(FrameRow(0, FRAME, 14, 8, (3, 30), 33, [(200, 4), (300, 4)]))
    rows.add(FrameRow(0, FRAME, 22, 8, (4, 40), 4, [(400, 8)]))
    for mark in range(5):
        frames = [(10, [(100, 9)]), (30, [(200, 4), (300, 4)]), (40, [(400, 8)])]
        assert list(rows.frames_from(mark)) == frames[(0, 1, 1, 2, 3)[mark] :]
    assert rows.count == 4


@pytest.mark.long
@cases("one_is_enough", [True, False])
def test_a_frame_is_found_however_many_bytes_of_the_next_are_there_yet(one_is_enough: bool) -> None:
    heads = Metadata()
    heads.one_is_enough = one_is_enough
    stream, size = JUNK + b"".join(FRAMES[:3]) + b"\xfe" * 80, len(FRAMES[0])
    for cut in range(len(JUNK) + size, len(JUNK) + 2 * size):
        for cuts in ([cut], [len(JUNK), cut]):
            some, others = (
                split(stream, cuts, set(), batch, begins=Classification.SEARCH, heads=heads) for batch in (1, 9)
            )
            assert some == others


def test_a_frame_comes_out_with_its_last_byte() -> None:
    detector, store = Recording(plain=True), Store()
    framer = Framer(store, detector, DEFAULT)
    frame = request(1)
    assert not feed(framer, store, 0, frame[:20], packet=7)
    assert framer.held_bytes == 20
    assert not feed(framer, store, 0, frame[20:-1], start=20, packet=8)
    assert feed(framer, store, 0, frame[-1:], start=len(frame) - 1, packet=9) == [(FRAME, 0, len(frame))]
    assert framer.held_bytes == 0


def test_bytes_of_another_protocol_are_no_frames_while_a_frame_of_kafka_is_held() -> None:
    detector, store = Recording(_0=Classification.FRAMES, _2=Classification.OTHER), Store()
    framer, frame = Framer(store, detector, DEFAULT), request(1)
    assert not feed(framer, store, 0, frame[:20])
    addresses = [store.add(frame[20:22]), store.add(frame)]
    columns = [np.array(each) for each in ([20, 0], addresses, [2, len(frame)], [2, 2], [2, 2])]
    assert not rows_of(framer.feed(RunBatch(np.array([0, 2]), np.full(2, RunKind.DATA, np.uint8), *columns)))
    assert not feed(framer, store, 2, b"x" * 20, start=len(frame))
    assert framer.ignored(2) == 20 + len(frame)
    assert feed(framer, store, 0, frame[22:], start=22, packet=3) == [(FRAME, 0, len(frame))]


def test_frames_are_split_wherever_their_run_begins() -> None:
    frame, store = request(1), Store()
    for cut in range(1, 30):
        framer = Framer(store, Recording(_0=Classification.FRAMES, plain=True), DEFAULT)
        stream = request(0, client_id=b"n" * 30) + frame * 4
        rows = feed(framer, store, 0, stream[:cut])
        rows += feed(framer, store, 0, stream[cut:], start=cut, packet=2)
        first = len(stream) - 4 * len(frame)
        starts = [first + n * len(frame) for n in range(4)]
        assert rows == [(FRAME, 0, first), *((FRAME, start, len(frame)) for start in starts)]


def test_what_is_still_undecided_is_decided_at_the_end() -> None:
    detector, store = Recording(_0=Classification.UNDECIDED), Store()
    framer = Framer(store, detector, DEFAULT)
    assert not feed(framer, store, 0, bytes(5))
    assert not rows_of(framer.flush())
    assert [final for *_, final in detector.asked] == [False, True]
    assert framer.ignored(0) == 5


@cases("lost", [False, True])
def test_what_is_held_of_a_connection_is_decided_when_it_ends(lost: bool) -> None:
    answer = Classification.POSSIBLE if lost else Classification.UNDECIDED
    detector, store = Recording(_0=answer), Store()
    framer = Framer(store, detector, DEFAULT)
    assert not feed(framer, store, 0, bytes(20), packet=1)
    if lost:  # then only the rows of what was skipped wait
        assert not feed(framer, store, 0, bytes(10), start=20, packet=2, lost=True)
    assert not rows_of(framer.end(np.array([1])))
    assert framer.ignored(0) == 0
    assert not rows_of(framer.end(np.array([0])))
    assert framer.ignored(0) == 20 + 10 * lost


class OneClient(Anything):
    """The even directions are those of clients, or the odd ones; remembers alerts."""

    def __init__(self, begins: Classification, heads: FrameHeuristics | None = None, client: int = 0) -> None:
        super().__init__(begins, heads)
        self._client = client
        self.alerts: list[tuple[int, bytes]] = []

    def is_client(self, direction: int) -> bool:
        return direction % 2 == self._client

    def note_alert(self, direction: int, data: bytes) -> None:
        self.alerts.append((direction, data))


def test_clients_are_searched_before_servers() -> None:
    store = Store()
    framer = Framer(store, OneClient(Classification.SEARCH), DEFAULT)
    data = [JUNK + request(number) for number in range(4)]
    columns = [
        np.array(each) for each in ([0] * 4, list(map(store.add, data)), list(map(len, data)), range(4), range(4))
    ]
    batches = framer.feed(RunBatch(np.arange(4), np.full(4, RunKind.DATA, np.uint8), *columns))
    batches += framer.end(np.zeros(0, np.int64))
    assert [sorted({*batch.direction.tolist()}) for batch in batches if len(batch)] == [[0, 2], [1, 3]]


@cases(("begins", "size", "lost", "is_told"), [
    (Classification.OTHER, 7, False, True), (Classification.OTHER, 6, False, False),
    (Classification.OTHER, 8, False, False), (Classification.OTHER, 7, True, False),
    (Classification.FRAMES, 7, False, False),
])  # fmt: skip
def test_an_alert_of_tls_is_told_of_who_is_no_kafka(
    begins: Classification, size: int, lost: bool, is_told: bool
) -> None:
    store, detector, alert = Store(), OneClient(begins), b"\x15\3\3\0\2\2\x28"
    framer = Framer(store, detector, DEFAULT)
    feed(framer, store, 3, request(1))
    feed(framer, store, 3, alert.ljust(size, b"\0")[:size], start=len(request(1)), packet=2, lost=lost)
    assert detector.alerts == ([(3, alert)] if is_told else [])


def test_where_too_much_is_held_the_oldest_are_released_down_to_half() -> None:
    says = {f"_{2 * number}": Classification.UNDECIDED for number in range(6)}
    detector, store = Recording(**says), Store()
    framer = Framer(store, detector, Limits(held_runs=10))
    for number in range(6):
        assert [framer.ignored(2 * each) for each in range(6)] == [0] * 6, "ten are as many as may be held"
        for part in (0, 1):
            feed(framer, store, 2 * number, bytes(4), start=4 * part, packet=10 * number + part)
    assert [framer.ignored(2 * number) for number in range(6)] == [8, 8, 8, 0, 0, 0]


class Asking(Metadata):
    """Frames begin with a negative number; remembers which were found."""

    def __init__(self, goes_on: bool = False) -> None:
        self.found: list[tuple[int, int]] = []
        self._goes_on = goes_on

    def strong(self, words: Int64, lengths: Int64) -> Bool:
        return words >> 16 == 0xFFFF

    def judge(self, head: bytes, packet: int) -> FrameEvidence:
        return FrameEvidence.STRONG if head[4:6] == b"\xff\xff" else FrameEvidence.NONE

    def follow(self, found: Iterable[FoundFrame]) -> bool:
        self.found += found
        return self._goes_on


@cases(("begins", "client", "goes_on", "at_once"), [
    (Classification.SEARCH, 1, False, False), (Classification.SEARCH, 1, True, True),
    (Classification.SEARCH, 0, False, True), (Classification.POSSIBLE, 0, False, True),
])  # fmt: skip
def test_frames_that_were_found_are_told_before_the_next_ones_are_searched(
    begins: Classification, client: int, goes_on: bool, at_once: bool
) -> None:
    store, heads = Store(), Asking(goes_on)
    detector = OneClient(begins, heads, client)
    framer = Framer(store, detector, DEFAULT)
    frame = response(-9)
    parts = [JUNK + frame, b"\x7f\xff\xff\xff" + frame]
    sizes = [len(part) for part in parts]
    columns = [np.array(each) for each in ([0, sizes[0]], [store.add(part) for part in parts], sizes, [5, 6], [5, 6])]
    batches = framer.feed(RunBatch(np.zeros(2, np.int64), np.full(2, RunKind.DATA, np.uint8), *columns))
    batches += [*framer.end(np.zeros(0, np.int64)), *framer.flush()]
    assert len([each for each in batches if len(each)]) == (1 if at_once else 2)
    rows = rows_of(batches)
    size = len(frame)
    assert [row for row in rows if row[0] == FRAME] == [(FRAME, 5, size), (FRAME, 9 + size, size)]
    assert heads.found[:1] == ([(-9, 5)] if begins == Classification.SEARCH else [])
    assert detector.findings == ([0] if begins == Classification.POSSIBLE else [])

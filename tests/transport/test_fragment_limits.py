"""Fragments of datagrams: when one is complete, when it is given up, each limit from both sides."""

from dissector.transport.fragments import LARGEST, MOST_FRAGMENTS, OVERHEAD, UNIT, DatagramKey, Fragments
from tests.cases import cases

KEY = DatagramKey(b"1234", b"5678", 7, 6)
OTHER = KEY._replace(identification=8)
NO_LIMIT = 1 << 30


def test_a_datagram_is_complete_once_each_of_its_bytes_is_there() -> None:
    fragments = Fragments(NO_LIMIT)
    assert fragments.feed(KEY, 0, False, b"") == b""
    assert fragments.feed(KEY, 8, False, b"last") is None
    assert fragments.held_bytes == 4 + OVERHEAD
    assert fragments.feed(KEY, 0, True, b"12345678") == b"12345678last"
    assert fragments.held_bytes == 0
    assert fragments.feed(KEY, 0, True, b"12345678") is None
    assert fragments.feed(KEY, 16, False, b"x") is None
    assert fragments.feed(KEY, 8, True, b"abcdefgh") == b"12345678abcdefghx"
    assert fragments.given_up == 0


def test_of_overlapping_fragments_the_first_one_captured_stays() -> None:
    fragments = Fragments(NO_LIMIT)
    assert fragments.feed(KEY, 8, True, b"second..") is None
    assert fragments.feed(KEY, 8, True, b"again...") is None
    assert fragments.feed(KEY, 16, False, b"end") is None
    assert fragments.feed(KEY, 0, True, b"firstOVERLAPS...") == b"firstOVEsecond..end"


@cases(("offset", "size", "more", "is_taken"), [
    (LARGEST - 7, 7, False, True), (LARGEST - 7, 8, False, False), (0, UNIT, True, True), (0, UNIT - 1, True, False),
    (0, UNIT + 1, True, False), (0, 0, True, False),
])  # fmt: skip
def test_a_fragment_is_taken_if_it_can_be_one(offset: int, size: int, more: bool, is_taken: bool) -> None:
    fragments = Fragments(NO_LIMIT)
    assert fragments.feed(KEY, offset // UNIT * UNIT, more, bytes(size + offset % UNIT)) is None
    assert (fragments.given_up, fragments.held_bytes > 0) == ((0, True) if is_taken else (1, False))


@cases(("count", "is_held"), [(MOST_FRAGMENTS, True), (MOST_FRAGMENTS + 1, False)])
def test_a_datagram_of_too_many_fragments_is_given_up(count: int, is_held: bool) -> None:
    fragments = Fragments(NO_LIMIT)
    for at in range(1, count + 1):
        assert fragments.feed(KEY, UNIT * at, True, bytes(UNIT)) is None
    assert fragments.given_up == (0 if is_held else count)
    assert fragments.held_bytes == ((UNIT + OVERHEAD) * count if is_held else 0)


@cases(("limit", "given_up"), [(2 * (UNIT + OVERHEAD), 0), (2 * (UNIT + OVERHEAD) - 1, 1)])
def test_the_oldest_datagram_is_given_up_where_too_much_is_held(limit: int, given_up: int) -> None:
    fragments = Fragments(limit)
    for key in (KEY, OTHER):
        assert fragments.feed(key, 0, True, bytes(UNIT)) is None
    assert fragments.given_up == given_up
    whole = fragments.feed(OTHER, UNIT, False, b"x")
    assert (whole, fragments.held_bytes) == (bytes(UNIT) + b"x", 0 if given_up else UNIT + OVERHEAD)
    fragments.flush()
    assert (fragments.given_up, fragments.held_bytes) == (1, 0)

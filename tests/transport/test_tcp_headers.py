"""TCP headers natively: what plain Python reads of each, whatever the bytes; and a hash table of pairs."""

from collections.abc import Sequence
from ipaddress import ip_address

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.batches import NO_SCALE
from dissector.transport.endpoint_index import EndpointIndex
from dissector.transport.tcp import CUT_OFF
from tests.transport.tcp_packets import IP, Pairs, headers_of, keys_of, packet

NOBODY = ((bytes(16), 1), (bytes(16), 2))
BYTES = st.sampled_from((0, 1, 1, 2, 3, 3, 3, 4, 8, 10, 15, 255))
OPTIONS = st.lists(BYTES, max_size=40).map(lambda each: bytes(each).ljust(len(each) + 3 & ~3, b"\0"))
ENDS = st.tuples(
    st.sampled_from((bytes(16), bytes(15) + b"\1", b"\1" + bytes(15), bytes(range(16)))), st.integers(0, 3)
)


def scale_of(options: bytes) -> int:
    """The scale of windows that options have (RFC 7323, 2.2)."""
    at = 0
    while at + 1 < len(options) and options[at] != 0:
        if options[at] == 1:
            at += 1
            continue
        kind, size = options[at], options[at + 1]
        if kind == 3 and size == 3 and at + 2 < len(options):
            return min(options[at + 2], 14)
        if size < 2:
            break
        at += size
    return NO_SCALE


@given(st.lists(st.tuples(OPTIONS, st.sampled_from((2, 16, 18)), st.integers(0, 120))))
def test_scales_are_those_of_options_as_far_as_they_were_captured(cases: Sequence[tuple[bytes, int, int]]) -> None:
    found, _ = headers_of([packet(NOBODY, options, flags) for options, flags, _ in cases], [cut for *_, cut in cases])
    wanted = [
        scale_of(options[: max(0, cut - IP - 20)]) if flags & 2 else NO_SCALE
        for options, flags, cut in cases
        if cut >= IP + 20
    ]
    assert found.scale.tolist() == wanted


@given(st.lists(st.binary(max_size=30)), st.lists(st.integers(0, 80), min_size=99, max_size=99))
def test_any_bytes_are_a_header_or_are_counted(headers: list[bytes], cuts: list[int]) -> None:
    packets = [b"\x60" + bytes(39) + each for each in headers]
    found, ignored = headers_of(packets, cuts[: len(packets)])
    wanted = []
    for row, (whole, cut) in enumerate(zip(packets, cuts, strict=False)):
        there, head = min(cut, len(whole)), whole[IP:]
        size = (head[12] >> 4) * 4 if there - IP >= 20 else 0
        if 20 <= size <= len(head):
            numbers = (int.from_bytes(head[at:end], "big") for at, end in ((4, 8), (8, 12), (13, 14), (14, 16)))
            wanted.append((row, *numbers, max(0, there - IP - size), len(whole) - max(there, IP + size)))
    columns = (found.row, found.seq, found.ack, found.flags, found.window, found.size, found.missing)
    assert [*zip(*(each.tolist() for each in columns), strict=True)] == wanted
    assert ignored[CUT_OFF] == len(packets) - len(wanted)


@given(st.lists(st.tuples(ENDS, ENDS), min_size=1))
def test_a_pair_has_one_key_in_either_direction(pairs: Pairs) -> None:
    found = headers_of([packet(each) for each in pairs])[0]
    back = headers_of([packet((to, source)) for source, to in pairs])[0]
    assert (found.keys == back.keys).all()
    assert (found.higher ^ back.higher).tolist() == [source != to for source, to in pairs]
    assert len({each.tobytes() for each in found.keys}) == len({frozenset(each) for each in pairs})


def test_an_address_of_ipv4_is_mapped_into_ipv6() -> None:
    head = bytes.fromhex("45") + bytes(11) + ip_address("10.0.0.1").packed + ip_address("10.0.0.2").packed
    four = head + bytes(20) + packet(NOBODY)[IP:]  # as long as an IPv6 header
    mapped = (ip_address("::ffff:10.0.0.1").packed, 1), (ip_address("::ffff:10.0.0.2").packed, 2)
    assert (headers_of([four])[0].keys == keys_of([mapped])).all()


@given(st.lists(st.lists(st.tuples(ENDS, ENDS), min_size=1), min_size=1, max_size=5))
def test_a_table_finds_each_pair_that_was_added(batches: list[Pairs]) -> None:
    index, entries = EndpointIndex(), dict[bytes, int]()
    for pairs in batches:
        keys = keys_of(pairs)
        names = [each.tobytes() for each in keys]
        assert index.find(keys).tolist() == [entries.get(name, -1) for name in names]
        fresh = np.array([n for n, name in enumerate(names) if name not in {*entries, *names[:n]}], np.int64)
        index.add(keys[fresh], fresh, fresh)
        entries |= {names[n]: len(entries) + place for place, n in enumerate(fresh.tolist())}

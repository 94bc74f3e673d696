"""Heuristics give the same result in columns and for each head alone."""

import struct
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture_session import Capture
from dissector.core.limits import Limits
from dissector.detection import other_protocols
from dissector.detection.frame_heuristics import HEAD, EitherHeuristics, RequestHeuristics, is_cut_short, is_printable
from dissector.framing import FrameEvidence
from tests.traffic import Turn, capture_of, conversation, response

CLIENT_IDS = st.sampled_from([b"", b"app-1", b"caf\xc3\xa9", b"a\x1bb", b"\x7f", b"x" * 50, b"x" * 51])
HEADS = st.builds(
    lambda size, key, version, length, name, more: struct.pack(">ihhih", size, key, version, 7, length) + name + more,
    st.sampled_from([10, 15, 44, 60, 1000, 1 << 23, 1 << 25, 1 << 29, -1]),
    st.sampled_from([-1, 0, 3, 18, 68, 100, 999]) | st.integers(-1, 100),
    st.sampled_from([-1, 0, 1, 4, 99]),
    st.sampled_from([-2, -1, 0, 5, 50, 51]),
    CLIENT_IDS,
    st.binary(max_size=HEAD),
)


@given(heads=st.lists(HEADS | st.binary(min_size=14, max_size=HEAD), min_size=1, max_size=20))
def test_a_plain_request_in_columns_is_a_request_alone(heads: list[bytes]) -> None:
    requests = RequestHeuristics(Limits().frame_size)
    columns = np.stack([np.frombuffer(head[:HEAD].ljust(HEAD, b"?"), np.uint8) for head in heads])
    plain = requests.plain(columns, np.array([len(head) for head in heads]))
    for head in (head[:HEAD] for head, is_plain in zip(heads, plain.tolist(), strict=True) if is_plain):
        assert requests.is_request(head)
        assert is_printable(head)
        assert not is_cut_short(head)
        assert other_protocols.recognize(head) is None


def test_what_clients_begin_with_is_plain() -> None:
    """ApiVersions, with and without a client id, as clients of today and of 2016 send it."""
    heads = [
        struct.pack(">ihhih", 20, 18, 3, 0, 5) + b"app-1" + bytes(5),
        struct.pack(">ihhih", 10, 18, 0, -1, -1),
        struct.pack(">ihhih", 14, 3, 1, 1, -1) + bytes(4),
    ]
    columns = np.stack([np.frombuffer(head.ljust(HEAD, b"?"), np.uint8) for head in heads])
    sizes = np.array([len(head) for head in heads])
    assert RequestHeuristics(Limits().frame_size).plain(columns, sizes).all()
    assert not RequestHeuristics(Limits().frame_size).plain(columns, sizes - 1)[1]


def zookeeper_reply(number: int) -> bytes:
    return response(number, struct.pack(">qi", 5 + number, 0) + b"x" * 20)


def zookeeper_request(number: int) -> bytes:
    return response(number, struct.pack(">ii", 1, 4) + b"/a/b" + bytes(20))


def with_another_inside(number: int) -> bytes:
    """A response of 52 bytes, and inside it, at byte 20, one that ends where the next one ends."""
    return response(number + 1, b"x" * 12 + struct.pack(">ii", 80, number) + bytes(24))


@pytest.mark.parametrize(
    ("frame", "first", "segment"),
    [
        (lambda number: response(1_000_000 - 1_000 * number), 0, 0),
        (zookeeper_reply, 0, 0),
        (zookeeper_request, 0, 0),
        (lambda number: zookeeper_reply(number) if number % 3 else zookeeper_request(number), 0, 0),
        (with_another_inside, 20, 52),
    ],
)
def test_every_head_is_judged_a_few_times(
    frame: Callable[[int], bytes], first: int, segment: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each candidate would be followed to the last frame: the square of their number."""
    judged = 0
    judge = EitherHeuristics.judge

    def counted(self: EitherHeuristics, head: bytes, packet: int) -> FrameEvidence:
        nonlocal judged
        judged += 1
        return judge(self, head, packet)

    monkeypatch.setattr(EitherHeuristics, "judge", counted)
    count = 500
    frames = [frame(number) for number in range(count)]
    stream = b"".join(frames)
    if segment:
        frames = [stream[:first], *(stream[at : at + segment] for at in range(first, len(stream), segment))]
    turns = [Turn(False, each) for each in frames]
    with Capture([capture_of(tmp_path, conversation(turns, handshake=False, server=("10.0.0.2", 19092)))]) as capture:
        for _ in capture.read():
            pass
    assert 0 < judged < 20 * max(count, len(frames))


@given(
    heads=st.lists(
        st.builds(
            lambda number, transaction, error, more: response(number, struct.pack(">qi", transaction, error) + more),
            st.integers(0, 40), st.integers(0, 3), st.sampled_from([0, 0, 1]), st.sampled_from([b"", b"/", b"//////"]),
        ),
        min_size=1, max_size=12,
    ),
    ends=st.integers(1, 3),
)  # fmt: skip
def test_a_series_is_judged_by_all_its_heads(heads: list[bytes], ends: int) -> None:
    """As one that has all of them at once would judge."""
    series = EitherHeuristics(RequestHeuristics(Limits().frame_size), may_be_client=False).series()
    possible = [series.add(head) for head in heads][-1]
    ids = [int.from_bytes(head[4:8], "big") for head in heads]
    rise = all(0 < two - one <= 16 for one, two in pairwise(ids))
    transactions = [int.from_bytes(head[8:16], "big") for head in heads]
    replies = transactions[0] > 0 and transactions == sorted(transactions) and all(h[16:20] == bytes(4) for h in heads)
    paths = any(head[16:17] == b"/" and head[12:14] == bytes(2) for head in heads)
    enough = len(heads) >= (3 if ends > 1 else 6)
    assert series.is_consistent(ends) == (rise and enough and not replies and not paths)
    assert possible == (rise and not paths)

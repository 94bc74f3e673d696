"""What reading costs grows with the capture, however much was lost of it: counted in calls, as no clock is steady."""

import random
from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from tests.calls import count_calls
from tests.traffic import ACK, Packet, capture_of, conversation, exchanges, lossy, request, response

Network = Callable[[int], list[Packet]]
"""The packets of one connection with so many exchanges."""


def calls(path: str) -> int:
    """Calls of functions while a capture is read."""
    with Capture([path]) as capture:
        return count_calls(lambda: deque(capture.read(), maxlen=0))


def whole(count: int) -> list[Packet]:
    return conversation(exchanges(count, pipelined=8, size=200), segment=100)


def holed(count: int) -> list[Packet]:
    return lossy(whole(count), random.Random(1))


def late(count: int) -> list[Packet]:
    """The beginning is not there, and some of the rest is not."""
    return holed(count)[count // 10 :]


def bytewise(count: int) -> list[Packet]:
    """A byte a segment."""
    return conversation(exchanges(count), segment=1)


def bytewise_holed(count: int) -> list[Packet]:
    return lossy(bytewise(count), random.Random(1))


def holes_behind(*, client: bool) -> Network:
    """A hole behind each message of one side."""

    def network(count: int) -> list[Packet]:
        at = {True: 1_000, False: 5_000}
        packets = conversation([], isn=(999, 4_999))
        for number in range(count):
            for side, data in ((True, request(number)), (False, response(number))):
                at[side] += 100 * (side is client)
                packets.append(Packet(side, at[side], data, ACK, at[not side]))
                at[side] += len(data)
        return packets

    return network


@pytest.mark.parametrize("client", [True, False])
def test_holes_are_searched_without_a_round_through_the_index_each(tmp_path: Path, *, client: bool) -> None:
    with Capture([capture_of(tmp_path, holes_behind(client=client)(500))]) as capture:
        deque(capture.read(), maxlen=0)
        assert capture.pipeline.indexer.generation < 50
        [kinds] = capture.index.columns(["kind"], range(len(capture)))
        assert kinds.count("exchange") >= 495


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "few"), [(whole, 80), (holed, 80), (late, 120), (bytewise, 20), (bytewise_holed, 20)]
)
def test_ten_times_the_frames_of_one_connection_cost_ten_times_the_work(
    tmp_path: Path, network: Network, few: int
) -> None:
    once = calls(capture_of(tmp_path, network(few)))
    assert calls(capture_of(tmp_path, network(10 * few))) < 12 * once

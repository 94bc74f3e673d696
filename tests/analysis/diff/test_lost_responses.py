"""Requests that the broker closes on are a difference, and the first one."""

from pathlib import Path

import pytest

from dissector.analysis.diff import DiffReason
from tests.analysis.diff.editing import compared
from tests.traffic import FIN, Packet, Turn, conversation, ethernet, exchanges, pcap, request, response

COMMIT = 8
GROUP = b"\0\x07billing"


def commit(number: int, version: int = 1) -> bytes:
    """OffsetCommit v0 or v1, which Kafka 4 no longer has, of no topic."""
    generation_and_member = bytes(6) if version else b""
    body = GROUP + generation_and_member + bytes(4)
    return request(number, api_key=COMMIT, version=version, client_id=b"sarama", body=body)


def answered(number: int) -> Turn:
    return Turn(False, response(number, bytes(4)))


def capture(folder: Path, name: str, turns: list[Turn], *, closed_by_client: bool | None) -> str:
    """A connection with these turns, which one side closes, or nobody."""
    packets = conversation([*exchanges(2), *turns])
    if closed_by_client is not None:
        last = [next(each for each in reversed(packets) if each.from_client is side) for side in (False, True)]
        mine, other = last[closed_by_client], last[not closed_by_client]
        end = Packet(closed_by_client, mine.seq + len(mine.payload), b"", FIN | 16, other.seq + len(other.payload),
                     client=mine.client, server=mine.server)  # fmt: skip
        packets.append(end)
    path = folder / f"{name}.pcap"
    path.write_bytes(pcap([ethernet(each) for each in packets]))
    return str(path)


SENT = [Turn(True, commit(90))]
FETCH = [Turn(True, request(90, api_key=1, version=4, client_id=b"sarama", body=bytes.fromhex("ffffffff") + bytes(17)))]


def test_a_request_that_the_broker_closes_on_is_the_first_difference(tmp_path: Path) -> None:
    old = capture(tmp_path, "old", [*SENT, answered(90)], closed_by_client=False)
    new = capture(tmp_path, "new", SENT, closed_by_client=False)
    first = compared(old, new).entries[0]
    assert (first.api, first.reason, first.a, first.b) == ("OffsetCommit", DiffReason.UNANSWERED, "0 of 1", "1 of 1")
    assert first.explanation.startswith("v1: the connection was closed before the response came")


@pytest.mark.long
def test_the_versions_are_those_of_the_sides_that_lost_responses(tmp_path: Path) -> None:
    lost = [[Turn(True, commit(90, 0))], [Turn(True, commit(90 + n)) for n in range(5)]]
    few, many = (capture(tmp_path, f"{n}", turns, closed_by_client=False) for n, turns in enumerate(lost))
    none = capture(tmp_path, "none", [*SENT, answered(90)], closed_by_client=False)
    for one, other, words in ((few, many, "v0, v1: "), (few, none, "v0: "), (many, none, "v1: ")):
        for sides in ((one, other), (other, one)):
            assert compared(*sides).entries[0].explanation.startswith(words), sides


@pytest.mark.parametrize(
    ("turns", "closed_by_client"),
    [(FETCH, True), (SENT, None)],
    ids=["a client stops with a fetch", "the capture ends"],
)
def test_what_may_still_be_answered_is_none(tmp_path: Path, turns: list[Turn], closed_by_client: bool | None) -> None:
    one = capture(tmp_path, "one", [*turns, answered(90)], closed_by_client=closed_by_client)
    other = capture(tmp_path, "other", turns, closed_by_client=closed_by_client)
    assert DiffReason.UNANSWERED not in {entry.reason for entry in compared(one, other).entries}

"""A connection that a client opens because the others are busy is chance; one that it opens beside an idle one is not.

`kafka-go` opened a second connection to produce where both partitions had records at the same moment, and kafka-python
one for metadata while the coordinator had not answered yet.
"""

from pathlib import Path

import pytest

from tests.analysis.diff.editing import compared, entry_texts
from tests.frames import request, response
from tests.traffic import CLIENT, FIN, Packet, Turn, conversation, ethernet, pcap

COORDINATOR, METADATA = 12, 3
GROUP = b"\0\x07billing" + bytes(4) + b"\0\x01m"
BUSY = "1SY 1SA 1RQ 2SY 2SA 1RS 2RQ 2RS"
OPENING = "1SY 2SY 1SA 2SA 1RQ 2RQ 1RS 2RS"
IDLE = "1SY 1SA 1RQ 1RS 2SY 2SA 2RQ 2RS"
AFTER_THE_OTHER = "1SY 1SA 1RQ 1RS 1FI 2SY 2SA 2RQ 2RS"
THREE = "1SY 2SY 3SY 1SA 2SA 3SA 1RQ 2RQ 3RQ 1RS 2RS 3RS"
ONE = "1SY 1SA 1RQ 1RS 1RQ 1RS"


def heartbeat(number: int, client: bytes) -> list[Turn]:
    sent = request(number, api_key=COORDINATOR, body=GROUP, client_id=client)
    return [Turn(True, sent), Turn(False, response(number, bytes(2)))]


def metadata(number: int) -> list[Turn]:
    return [Turn(True, request(number)), Turn(False, response(number))]


def capture(
    folder: Path, name: str, order: str, *, neutral: frozenset[int] = frozenset(), client: bytes = b"tests"
) -> str:
    """Connections, each with its SYN, the SYN of the server, requests, responses and the FIN of the client in this
    order; they heartbeat, but some ask for metadata alone. All end in the order of their numbers."""
    words = order.split()
    names = sorted({word[0] for word in words})
    words += [f"{each}FI" for each in names if f"{each}FI" not in words]
    packets: dict[str, list[Packet]] = {}
    for each in names:
        turns = [turn for n in range(words.count(f"{each}RQ"))
                 for turn in (metadata(n) if int(each) in neutral else heartbeat(n, client))]  # fmt: skip
        found = conversation(turns, client=(CLIENT[0], CLIENT[1] + int(each)))
        last = [next(packet for packet in reversed(found) if packet.from_client is side) for side in (True, False)]
        ends = [packet.seq + len(packet.payload) for packet in last]
        found.append(Packet(True, ends[0], b"", FIN | 16, ends[1], client=last[0].client, server=last[0].server))
        packets[each] = found
    path = folder / f"{name}.pcap"
    path.write_bytes(pcap([ethernet(packets[word[0]].pop(0)) for word in words]))
    return str(path)


def connections(a: str, b: str) -> list[tuple[str, str]]:
    """What is said of their numbers, in both directions."""
    found = [entry[3:] for entry in entry_texts(compared(a, b)) if entry[1] == "connections"]
    assert [entry[:2:-1] for entry in entry_texts(compared(b, a)) if entry[1] == "connections"] == found
    return found


@pytest.mark.parametrize("order", [BUSY, OPENING])
def test_a_connection_that_is_opened_because_the_others_are_busy_is_chance(order: str, tmp_path: Path) -> None:
    one = capture(tmp_path, "one", ONE)
    assert connections(one, capture(tmp_path, "two", order)) == []
    assert connections(one, capture(tmp_path, "other", order, client=b"others")) != []


@pytest.mark.parametrize(
    ("order", "text"),
    [
        (IDLE, "2 with 2 group coordinator"),
        (AFTER_THE_OTHER, "2 with 2 group coordinator"),
        (THREE, "3 with 3 group coordinator"),
    ],
)
def test_other_connections_are_a_difference(order: str, text: str, tmp_path: Path) -> None:
    found = connections(capture(tmp_path, "one", ONE), capture(tmp_path, "more", order))
    assert found == [("1 with 1 group coordinator", text)]


@pytest.mark.parametrize(
    ("one", "more", "differs"),
    [
        # the second connection for metadata comes while a heartbeat waits for its response
        ("1SY 1SA 1RQ 1RS 2SY 2SA 2RQ 2RS", "1SY 1SA 1RQ 1RS 1FI 2SY 2SA 2RQ 3SY 3SA 2RS 3RQ 3RS", False),
        # or while it has come
        ("1SY 1SA 1RQ 1RS 2SY 2SA 2RQ 2RS", "1SY 1SA 1RQ 1RS 1FI 2SY 2SA 2RQ 2RS 3SY 3SA 3RQ 3RS", True),
        # in a role of which the other side has no connection
        ("2SY 2SA 2RQ 2RS", "2SY 2SA 2RQ 3SY 3SA 2RS 3RQ 3RS", True),
    ],
)
def test_metadata_is_asked_for_on_any_connection(one: str, more: str, tmp_path: Path, *, differs: bool) -> None:
    neutral = frozenset((1, 3))
    sides = [capture(tmp_path, f"{n}", order, neutral=neutral) for n, order in enumerate((one, more))]
    assert bool(connections(*sides)) is differs

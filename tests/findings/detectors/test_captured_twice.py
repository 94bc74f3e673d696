"""Copies of connections are told by their sequence numbers, and nothing else is taken for one."""

from itertools import zip_longest
from pathlib import Path

from tests.cases import cases
from tests.findings.conversations import troubles
from tests.traffic import Packet, Turn, capture_of, conversation, request, response

RANDOM = (3_735_928_559, 195_948_557)
TURNS = [Turn(True, request(1)), Turn(False, response(1)), Turn(True, request(2)), Turn(False, response(2))]
CLIENT = ("10.0.0.1", 40_001)
POD = ("10.244.1.7", 9_092)
SERVICE = ("10.96.0.1", 9_092)


def found(folder: Path, packets: list[Packet]) -> list[str]:
    return [each.message for _, each in troubles(capture_of(folder, packets)) if each.code == "captured-twice"]


def both(*connections: list[Packet]) -> list[Packet]:
    """The packets of connections, in turn."""
    return [packet for row in zip_longest(*connections) for packet in row if packet is not None]


def test_a_service_and_its_pod_are_one_finding(tmp_path: Path) -> None:
    """Of two connections, on which the capture has each packet under both addresses."""
    packets = []
    for port in (40_001, 40_002):
        isn = (RANDOM[0] + port, RANDOM[1] + port)
        ends = [conversation(TURNS, isn=isn, client=("10.0.0.1", port), server=each) for each in (SERVICE, POD)]
        packets += both(*ends)
    [message] = found(tmp_path, packets)
    assert message.startswith("the same packets are in the capture as 10.0.0.1 to 10.96.0.1:9092")
    assert "; 2 such connections within " in message


@cases("name", ["other numbers", "small numbers", "same addresses", "later"])
def test_other_connections_are_not_copies(tmp_path: Path, name: str) -> None:
    """The same bytes of an application twice; made-up packets; another port of a client; a recording copied."""
    isn, server, port = RANDOM, SERVICE, CLIENT[1]
    if name == "other numbers":
        isn = (RANDOM[0], RANDOM[1] + 1)
    elif name == "same addresses":
        server, port = POD, CLIENT[1] + 1
    first = conversation(TURNS, isn=(1000, 5000) if name == "small numbers" else RANDOM, server=POD)
    other = conversation(
        TURNS, isn=(1000, 5000) if name == "small numbers" else isn, client=(CLIENT[0], port), server=server
    )
    filler = conversation([TURNS[0], TURNS[1]] * 60, isn=(7, 9), client=("10.0.0.9", 1), server=POD)
    packets = [*first, *filler, *other] if name == "later" else both(first, other)
    assert found(tmp_path, packets) == []

"""Turns that are made into packets one by one read back as the same conversation."""

import random
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.conversation import End, Packet, Turn, pcapng
from dissector.conversation.packets import PacketWriter
from dissector.exchange.model import Exchange
from tests.cases import cases
from tests.conftest import PCAPS


def comparable(exchange: Exchange) -> tuple[object, ...]:
    sides = [
        message and (message.time_ns, message.size, message.data) for message in (exchange.request, exchange.response)
    ]
    return exchange.fields.time_ns, exchange.fields.client, exchange.fields.server, exchange.fields.api, *sides


def again(path: Path, rows: list[Exchange]) -> list[Exchange]:
    """Rows in their order, written a row at a time, and read."""
    made, packets = PacketWriter(), list[Packet]()
    for each in rows:
        row = each.fields
        made.begin(row.connection, End.parse(row.client), End.parse(row.server))
        packets += made.packets(row.time_ns)
        for message, of_client in ((each.request, True), (each.response, False)):
            if message is not None:
                missing = message.size - len(message.data)
                made.say(row.connection, Turn(message.time_ns, of_client, message.data, missing))
    packets += made.packets()
    assert [packet.time_ns for packet in packets] == sorted(packet.time_ns for packet in packets)
    path.write_bytes(b"".join(pcapng(packets, "made")))
    with Capture([str(path)], ports=frozenset({9092, 9094}), show_secrets=True) as capture:
        for _ in capture.read():
            pass
        return list(capture.exchanges())


@pytest.mark.long
@cases("name", ["java", "librdkafka-pipelined", "java-sasl-plain"])
@cases("share", [1.0, 0.3])
def test_rows_that_were_chosen_come_back(name: str, share: float, tmp_path: Path) -> None:
    with Capture([str(PCAPS / f"{name}.pcapng")], show_secrets=True) as capture:
        for _ in capture.read():
            pass
        rows = [each for each in capture.exchanges() if each.fields.kind == "exchange"]
    rows = [each for each in rows if random.Random(each.fields.number).random() < share]
    found = again(tmp_path / "made.pcapng", rows)
    assert sorted(map(comparable, found), key=repr) == sorted(map(comparable, rows), key=repr)

"""Packets of TCP made for the frames of rows, for what was encrypted: the original ones carry no plaintext.

A packet has the time of its frame; connections open when their first frame is sent, and none of them ends. What of a
frame was not captured is missing in the made stream too.
"""

from collections.abc import Callable, Iterable, Iterator

from dissector.capture_session import Capture
from dissector.conversation import End, Packet, Turn
from dissector.conversation.packet_writer import PacketWriter
from dissector.exchange.model import ExchangeMessage

Content = Callable[[ExchangeMessage], bytes]
"""Returns the bytes that stand for a frame, as many as were captured."""


def made_packets(
    capture: Capture, rows: Iterable[int], content: Content, address: Callable[[str], str] = str
) -> Iterator[Packet]:
    """Yield packets of these rows, from 0 and ascending. `address` replaces the addresses of both ends."""
    writer = PacketWriter()
    for row in rows:
        spans = capture.frames.spans(row)
        if not spans:
            continue
        exchange = capture.exchange(row)
        connection = spans[0].direction >> 1
        ends = (End.parse(each) for each in (exchange.fields.client, exchange.fields.server))
        client, server = (End(address(end.host), end.port) for end in ends)
        yield from writer.packets(exchange.fields.time_ns)
        writer.begin(connection, client, server)
        for span in spans:
            message = exchange.request if span.of_client else exchange.response
            data = b"" if message is None else content(message)
            time_ns = exchange.fields.time_ns if message is None else message.time_ns
            writer.say(connection, Turn(time_ns, span.of_client, data, span.size - len(data)))
    yield from writer.packets()

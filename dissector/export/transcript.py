"""Exchanges as a hex transcript, which kdissect reads again: a comment on what a row is, then its frames.

A response stands right behind its request. What a row has no bytes of (a gap, a stranger) is a comment alone.
"""

from collections.abc import Iterable, Iterator

from dissector.capture_session import Capture
from dissector.conversation.transcript import frame_lines
from dissector.core.text import clean, duration
from dissector.exchange.model import Exchange


def transcript(capture: Capture, rows: Iterable[int]) -> Iterator[str]:
    """The lines of these rows. Secrets are masked, unless the capture shows them."""
    for row in rows:
        exchange = capture.exchange(row)
        yield "# " + clean(_words(exchange))
        if exchange.is_stored:
            continue  # an entry of a file is no frame that somebody sent
        for message, from_client in ((exchange.request, True), (exchange.response, False)):
            if message is not None:
                yield from frame_lines(message.data, from_client=from_client, connection=exchange.fields.connection)
                missing = message.size - len(message.data)
                if missing:
                    yield f"# {missing:,} bytes of it were not captured"


def _words(exchange: Exchange) -> str:
    """What a row is."""
    facts = exchange.fields
    words = f"{facts.number}: {facts.client} to {facts.server}, {facts.api}"
    words += "" if facts.version is None else f" v{facts.version}"
    words += "" if facts.correlation_id is None else f", correlation id {facts.correlation_id}"
    words += "" if facts.client_id is None else f", {facts.client_id}"
    return words + ("" if facts.latency_ns is None else f", after {duration(facts.latency_ns)}")

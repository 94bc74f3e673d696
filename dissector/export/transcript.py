"""Exports exchanges as a hex transcript, which kdissect can read: a comment on each row, then its frames.

A response follows its request. A row without bytes (a gap, a non-Kafka connection) is only a comment.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from dissector.capture_session import Capture
from dissector.conversation.transcript import frame_lines
from dissector.core.text import clean, duration
from dissector.exchange.model import Exchange


def transcript(capture: Capture, rows: Sequence[int]) -> Iterator[str]:
    """Yield the lines of these rows. Secrets are masked, unless the capture shows them."""
    for exchange in capture.at(np.asarray(rows, np.int64)):
        yield "# " + clean(_row_comment(exchange))
        if exchange.is_stored:
            continue  # an entry of a file was not sent as a frame
        for message, from_client in ((exchange.request, True), (exchange.response, False)):
            if message is not None:
                yield from frame_lines(message.data, from_client=from_client, connection=exchange.fields.connection)
                missing = message.size - len(message.data)
                if missing:
                    yield f"# {missing:,} bytes of it were not captured"


def _row_comment(exchange: Exchange) -> str:
    """Return the comment on a row."""
    row = exchange.fields
    text = f"{row.number}: {row.client} to {row.server}, {row.api}"
    text += "" if row.version is None else f" v{row.version}"
    text += "" if row.correlation_id is None else f", correlation id {row.correlation_id}"
    text += "" if row.client_id is None else f", {row.client_id}"
    return text + ("" if row.latency_ns is None else f", latency {duration(row.latency_ns)}")

"""Labels of lanes and events in a picture. Cleaned for display, not yet escaped for markup."""

from dissector.analysis.sequence_diagram.diagram import Lane, SequenceEvent
from dissector.core.text import clean, duration

MAX_TEXT = 60


def lane_label(lane: Lane) -> str:
    """Return ``rdkafka · 127.0.0.1``."""
    name = lane.name or ("client" if lane.is_client else "broker")
    return clean(f"{name} · {lane.address}")


def event_label(event: SequenceEvent) -> str:
    """Return ``17 Fetch v12 · orders[0..3]``: the row number and the message."""
    return f"{event.number + 1} {message_label(event)}"


def message_label(event: SequenceEvent) -> str:
    """Return ``Fetch v12 · orders[0..3]``; for a response, with its latency: ``Fetch v12 · 2.0 ms``."""
    latency = "" if event.is_request or event.latency_ns is None else duration(event.latency_ns)
    text = event.words if len(event.words) <= MAX_TEXT else f"{event.words[: MAX_TEXT - 1]}…"
    return clean(" · ".join(filter(None, (event.label, latency, text))))

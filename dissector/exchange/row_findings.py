"""Findings that a row has because of what the capture holds of it, not because of a field."""

from typing import Final

from dissector.core.finding import Finding, Severity
from dissector.detection.other_protocols import OtherProtocol
from dissector.exchange.model import ExchangeMessage
from dissector.index.exchange_table import RowKind
from dissector.index.frame_table import FrameTable

ORPHAN: Final = Finding("orphan", Severity.WARNING, "response without a request in this capture", "response")
UNANSWERED: Final = Finding("unanswered", Severity.WARNING, "no response in this capture", "request")
CLOSED: Final = Finding("unanswered", Severity.WARNING, "no response before the connection was closed", "request")
CUT_SHORT: Final = Finding(
    "cut-short", Severity.ERROR, "the connection was closed before the response was whole", "response"
)
ACKS_0: Final = Finding("no-response-expected", Severity.NOTE, "acks=0: the broker sends no response", "request")


def missing_response(*, is_expected: bool, is_ended: bool) -> Finding:
    """The finding of a request without a response; `is_ended`: its connection was closed, or begun to be."""
    if not is_expected:
        return ACKS_0
    return CLOSED if is_ended else UNANSWERED


def ends_stream(frames: FrameTable, frame: int, response: ExchangeMessage) -> bool:
    """Whether the captured bytes of a direction end in the middle of this response."""
    if len(response.data) == response.size or response.whole < len(response.data):
        return False
    direction = frames.direction.values[frame]
    later = (frames.direction.values == direction) & (frames.start.values > frames.start.values[frame])
    return not bool(later.any())


def between_frames(kind: RowKind, size: int) -> Finding:
    """The finding of a gap, or of bytes without frames."""
    words = "were not captured" if kind is RowKind.GAP else "without a frame that could be recognized"
    return Finding(kind.name.lower(), Severity.ERROR, f"{size:,} bytes {words}")


def non_kafka(kind: RowKind, protocol: OtherProtocol) -> Finding:
    """The finding of a connection on Kafka's port that speaks something else."""
    return Finding(kind.name.lower(), Severity.WARNING, _non_kafka_words(kind, protocol))


def _non_kafka_words(kind: RowKind, protocol: OtherProtocol) -> str:
    if kind is RowKind.TLS:
        return "encrypted: TLS"
    if protocol > OtherProtocol.UNKNOWN:
        return f"{protocol.label} on Kafka's port, not Kafka"
    if protocol is OtherProtocol.UNDETERMINED:
        return "on Kafka's port, but no Kafka frame was recognized in it"
    return "on Kafka's port, but not Kafka"

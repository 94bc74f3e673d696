"""What became of an exchange, and how its row says so: a mark, a word in place of the latency, which part of the info
column is colored; the mark, the comments and the time beside it. Without a screen.

Only these are colored, not the row: a capture of an election, where every second response is an error, stays readable.
"""

from enum import Enum
from typing import Final

from dissector.capture_session import Capture
from dissector.core.finding import Severity
from dissector.core.text import clean
from dissector.exchange.finding_words import heading_sizes
from dissector.exchange.model import Exchange
from dissector.exchange.row_findings import ACKS_0, CLOSED
from dissector.exchange.silence_causes import OF_OPEN_CONNECTIONS, SILENCE_CAUSES
from dissector.export.packets import EXPORT_COMMENT
from tui.appearance import Appearance
from tui.row_view import RowView
from tui.time_format import REFERENCE, TimeFormat, time_text


class RowState(Enum):
    """The value: the mark beside the row; the word in the Latency column, if there is no latency; the color of both."""

    ANSWERED = " ", "", ""
    NOTED = "·", "", ""
    REFUSED = "!", "", "warning"
    """With a warning: mostly an error of the broker's."""
    WAITING = "…", "waiting", "repeated"
    """In flight: the response may still arrive."""
    HELD = "‖", "held", "warning"
    """A proxy holds the request or the response until the user decides."""
    UNANSWERED = "?", "no reply", "warning"
    ONE_WAY = "·", "acks=0", "repeated"
    ORPHAN = "¿", "orphan", "warning"
    """A response whose request was not captured."""
    DAMAGED = "‼", "damaged", "error"
    """Bytes that can't be read, or that are not there."""
    CLOSED = "‼", "closed", "error"
    """An intact request on which the connection was closed, with an error about it."""
    UNHEARD = "‼", "no reply", "error"
    """An intact request without a response, with an error about it."""
    NOT_PENDING = "‼", "no request", "error"
    """An intact response to no request."""
    FAILED = "‼", "failed", "error"
    """An intact exchange with an error about it."""
    LOST = "‼", "lost", "error"
    """Bytes that were not captured."""
    FOREIGN = "‼", "not Kafka", "error"
    """Bytes, or a connection, that are not Kafka's."""

    @property
    def mark(self) -> str:
        return self.value[0]

    @property
    def latency(self) -> str:
        """What stands for a latency that there is not."""
        return self.value[1]

    @property
    def color(self) -> str:
        """A color of the list; empty for the row's."""
        return self.value[2]


_BY_SEVERITY: Final = {
    None: RowState.ANSWERED, Severity.NOTE: RowState.NOTED, Severity.WARNING: RowState.REFUSED,
    Severity.ERROR: RowState.FAILED,
}  # fmt: skip
_OF_BYTES: Final = frozenset(
    {"malformed", "incomplete-frame", "cut-short", "bad-batch", "bad-record", "bad-crc", "bad-compression"}
)
"""Codes of errors of a message's own bytes."""
_OF_KINDS: Final = {"gap": RowState.LOST, "sasl": RowState.FAILED}
"""By the kind of a row with an error that is no exchange; the others are not Kafka's."""

ERROR_MARKS: Final = {
    None: (RowState.REFUSED.mark, "warning"), Severity.NOTE: (RowState.NOTED.mark, ""),
    Severity.WARNING: (RowState.REFUSED.mark, "warning"), Severity.ERROR: (RowState.FAILED.mark, "bad"),
}  # fmt: skip
"""The mark and the role of the color of a broker's error where rows are lines of text, as the list would mark it."""


def row_state(exchange: Exchange, *, is_read: bool) -> RowState:
    """Return the state of a row. Unless the capture `is_read`, a response may still come while the connection is
    open."""
    severity = exchange.row.severity
    if severity is Severity.ERROR:
        return _failed_state(exchange)
    if exchange.row.kind != "exchange":
        return _BY_SEVERITY[severity]
    if exchange.request is None:
        return RowState.ORPHAN
    if exchange.response is None:
        if ACKS_0 in exchange.row_findings:
            return RowState.ONE_WAY
        return RowState.UNANSWERED if is_read or _is_closed(exchange) else RowState.WAITING
    return _BY_SEVERITY[severity]


def _failed_state(exchange: Exchange) -> RowState:
    """Return what happened in a row with an error."""
    is_damaged = any(each.severity is Severity.ERROR and each.code in _OF_BYTES for each in exchange.findings)
    if exchange.is_stored or is_damaged:
        return RowState.DAMAGED
    if exchange.row.kind != "exchange":
        return _OF_KINDS.get(exchange.row.kind, RowState.FOREIGN)
    if exchange.request is None:
        return RowState.NOT_PENDING
    if exchange.response is None:
        return RowState.CLOSED if _is_closed(exchange) else RowState.UNHEARD
    return RowState.FAILED


def _is_closed(exchange: Exchange) -> bool:
    """Whether a finding of the row says that its connection was closed before the response."""
    causes = SILENCE_CAUSES - OF_OPEN_CONNECTIONS
    return any(each == CLOSED or each.code in causes for each in exchange.row_findings)


def alarm_size(exchange: Exchange, state: RowState) -> int:
    """Return how many characters at the beginning of the info column say what is wrong: names of errors and codes of
    findings; of damage all of it."""
    info = exchange.row.info
    if state.color == "error":
        return len(info)
    if state.color != "warning":
        return 0
    return heading_sizes(info, exchange.row_findings)[0]


MARKED, COMMENTED, BOTH = "◆", "✎", "◈"


class RowWords:
    """The words of a capture's rows, as the user wants to see them."""

    def __init__(self, capture: Capture, view: RowView, appearance: Appearance) -> None:
        self._capture = capture
        self._view = view
        self._appearance = appearance

    def mark(self, number: int, comment: str) -> str:
        """Return the mark of a row with that comment."""
        marked = number in self._appearance.marks.marked
        return BOTH if marked and comment else MARKED if marked else COMMENTED if comment else " "

    def comment(self, number: int) -> str:
        """Return the comments on a row, of the user and of its packets in the capture."""
        written = [self._appearance.marks.comments.get(number, "")]
        if self._capture.comments:
            packets = dict.fromkeys(span.packet for span in self._capture.frames.spans(number))
            lines = "\n".join(self._capture.comments.get(packet, "") for packet in packets).splitlines()
            written += [line for line in lines if not EXPORT_COMMENT.match(line)]
        return clean(" · ".join(line for line in written if line))

    def time(self, position: int, number: int, time_ns: int) -> str:
        """Return the time of the row at a position of the list."""
        form, reference = self._appearance.time, self._appearance.reference
        if number == reference:
            return REFERENCE
        since = self._capture.start_ns
        if form is TimeFormat.PREVIOUS:
            since = self._time_of(self._view.number(position - 1)) if position else time_ns
        elif form is TimeFormat.SINCE_REFERENCE and reference is not None:
            since = self._time_of(reference)
        return time_text(time_ns, form, since)

    def _time_of(self, number: int) -> int:
        [[time_ns]] = self._capture.index.columns(["time_ns"], range(number, number + 1))
        return time_ns if isinstance(time_ns, int) else self._capture.start_ns

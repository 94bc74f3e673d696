"""Words beside a row of the exchange list: its mark, its comments, its time. Without a screen."""

from dissector.capture_session import Capture
from dissector.core.text import clean
from dissector.export.packets import EXPORT_COMMENT
from tui.appearance import Appearance
from tui.row_view import RowView
from tui.time_format import REFERENCE, TimeFormat, time_text

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

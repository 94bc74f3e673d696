"""Requests of one part of the screen to another that it does not know."""

from collections.abc import Mapping, Sequence

from textual.message import Message
from textual.screen import Screen

from dissector.capture import CaptureError
from dissector.capture_session import Capture
from dissector.detection.decode_as import DecodeAs
from tui.location_history import Location
from tui.saved import Setting


class ApplyFilter(Message):
    """Show the rows that match a filter; with `prepare`, put it into the filter bar for editing."""

    def __init__(self, text: str, *, prepare: bool = False) -> None:
        super().__init__()
        self.text = text
        self.prepare = prepare


class AddColumn(Message):
    """Show a field as a column of the list. The path begins with ``request`` or ``response``."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path


class GoTo(Message):
    """Jump to a row, from 0, or to a field of it."""

    def __init__(self, number: int, side: str | None = None, path: str = "") -> None:
        super().__init__()
        self.place = Location(number, side, path)


class SavePreference(Message):
    """Save a preference of the user for the next start. `value` None: the default."""

    def __init__(self, name: str, value: str | list[str] | None) -> None:
        super().__init__()
        self.name = name
        self.value = value


class SaveEntry(Message):
    """Save an entry of a table of the configuration for the next start. `value` None: delete it."""

    def __init__(self, table: str, name: str, value: Setting | Mapping[str, Setting] | None) -> None:
        super().__init__()
        self.table = table
        self.name = name
        self.value = value


class OpenDetail(Message):
    """Show an exchange of a capture on another main screen, over this one."""

    def __init__(
        self, capture: Capture, number: int, side: str | None = None, path: str = "", *, filter: str = ""
    ) -> None:
        """`filter` selects the exchanges that are shown; empty for all."""
        super().__init__()
        self.capture = capture
        self.filter = filter
        self.place = Location(number, side, path)


class CompareWith(Message):
    """Compare a capture with the one at a path."""

    def __init__(self, capture: Capture, path: str) -> None:
        super().__init__()
        self.capture = capture
        self.path = path


class ReadAgain(Message):
    """Read the capture of a screen again with what the user says that connections are; begin with a filter, at a
    time."""

    def __init__(self, screen: Screen[None], decode_as: Sequence[DecodeAs], filter: str, time_ns: int | None) -> None:
        super().__init__()
        self.screen = screen
        self.decode_as = tuple(decode_as)
        self.filter = filter
        self.time_ns = time_ns


class CaptureFailed(Message):
    """There is nothing to show: a pipe turned out to be no capture."""

    def __init__(self, error: CaptureError) -> None:
        super().__init__()
        self.error = error

"""The main screen: the panes of `core_screen.py`, and what a user does with them, a feature each (`features/`); and the
same for one exchange, in front of another screen."""

from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from dissector.capture_session import Capture, Progress
from tui.feature import EscapeSteps, ScreenFeature
from tui.features.check import CheckFeature
from tui.features.clipboard import ClipboardFeature
from tui.features.commands import CommandsFeature
from tui.features.compare import CompareFeature
from tui.features.decode_as import DecodeAsFeature
from tui.features.export import ExportFeature
from tui.features.filter import FilterFeature
from tui.features.findings import FindingsFeature
from tui.features.follow import FollowFeature
from tui.features.go_to import GoToFeature
from tui.features.list_appearance import ListAppearanceFeature
from tui.features.long_messages import LongMessagesFeature
from tui.features.marks import MarksFeature
from tui.features.navigation import NavigationFeature
from tui.features.panes import PanesFeature
from tui.features.row_search import RowSearchFeature
from tui.features.saved import ProfilesFeature, SavedFiltersFeature
from tui.features.search import SearchFeature
from tui.features.sort import SortFeature
from tui.features.value_actions import ValueActionsFeature
from tui.features.views import ConnectionFeature, DiagramsFeature, IoGraphFeature, RecordsFeature
from tui.location_history import Location
from tui.messages import ApplyFilter
from tui.screens.core_screen import CoreScreen


class MainScreen(CoreScreen):
    """List, fields and bytes of one capture, with all features."""

    FEATURES: ClassVar[tuple[type[ScreenFeature[Any]], ...]] = (
        CheckFeature, CompareFeature, ExportFeature, DiagramsFeature, MarksFeature, ListAppearanceFeature, SortFeature,
        PanesFeature, FilterFeature, RecordsFeature, ClipboardFeature, ValueActionsFeature, LongMessagesFeature,
        FindingsFeature, RowSearchFeature, SearchFeature, FollowFeature, NavigationFeature,
        ConnectionFeature, IoGraphFeature, CommandsFeature, GoToFeature, SavedFiltersFeature, ProfilesFeature,
        DecodeAsFeature,
    )  # fmt: skip

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture)
        self.filter = self.feature(FilterFeature)
        self.findings = self.feature(FindingsFeature)
        self.list_appearance = self.feature(ListAppearanceFeature)

    def escape_order(self) -> EscapeSteps:
        return (
            self.feature(RowSearchFeature).stop,
            self.feature(LongMessagesFeature).cancel_jump,
            self.filter.stop,
            self.filter.clear,
        )


class DetailScreen(MainScreen):
    """The main screen of a capture that is read, opened at a location."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "dismiss", "Back", tooltip="Back to the comparison", id="detail.back"),
    ]

    def __init__(self, capture: Capture, place: Location, filter: str = "") -> None:
        """`filter` selects the exchanges that are shown; empty for all."""
        super().__init__(capture)
        self._begin = place
        self._begin_filter = filter

    def _rows_renumbered(self) -> None:
        """Rows have their final order already."""

    def _loaded(self, progress: Progress, done: bool) -> None:
        super()._loaded(progress, done)
        self.go_to_place(self._begin)
        if self._begin.path:
            self.field_tree.focus()
        if self._begin_filter:  # while rows are matched none is selected
            self.filter.when_matched = lambda: self.go_to_place(self._begin)
            self.post_message(ApplyFilter(self._begin_filter))


class LiveDetailScreen(DetailScreen):
    """The same of a capture that still grows, which another screen reads: the rows of the moment when it is opened."""

    RENUMBERS_ROWS = False

    def begin_reading(self) -> None:
        self._loaded(Progress(0, 0, self.capture.packets, len(self.capture)), done=False)

"""The main screen: the panes of `core_screen.py`, and what a user does with them, a file in `features/` each."""

from typing import ClassVar

from dissector.tui.features.check import CheckFeature
from dissector.tui.features.clipboard import ClipboardFeature
from dissector.tui.features.colors import ColorsFeature
from dissector.tui.features.columns import ColumnsFeature
from dissector.tui.features.commands import CommandsFeature
from dissector.tui.features.compare import CompareFeature
from dissector.tui.features.connection import ConnectionFeature
from dissector.tui.features.decode_as import DecodeAsFeature
from dissector.tui.features.export import ExportFeature
from dissector.tui.features.filter import FilterFeature
from dissector.tui.features.findings import FindingsFeature
from dissector.tui.features.follow import FollowFeature
from dissector.tui.features.follow_text import FollowTextFeature
from dissector.tui.features.history import HistoryFeature
from dissector.tui.features.io_graph import IoGraphFeature
from dissector.tui.features.long_messages import LongMessagesFeature
from dissector.tui.features.marks import MarksFeature
from dissector.tui.features.navigation import NavigationFeature
from dissector.tui.features.overview import OverviewFeature
from dissector.tui.features.panes import PanesFeature
from dissector.tui.features.records import RecordsFeature
from dissector.tui.features.row_search import RowSearch
from dissector.tui.features.saved import ProfilesFeature
from dissector.tui.features.search import SearchFeature
from dissector.tui.features.sequence import SequenceFeature
from dissector.tui.features.slow_exchanges import SlowExchangesFeature
from dissector.tui.features.sort import SortFeature
from dissector.tui.features.timelines import TimelineFeature
from dissector.tui.features.times import TimesFeature
from dissector.tui.features.value_actions import ValueActionsFeature
from dissector.tui.screens.core_screen import EscapeSteps


class MainScreen(
    DecodeAsFeature, ProfilesFeature, CommandsFeature, IoGraphFeature, ConnectionFeature, FollowTextFeature,
    HistoryFeature, NavigationFeature, FollowFeature, SearchFeature, SlowExchangesFeature, FindingsFeature,
    LongMessagesFeature, ValueActionsFeature, ClipboardFeature, RecordsFeature, FilterFeature, PanesFeature,
    SortFeature, ColumnsFeature, TimesFeature, ColorsFeature, MarksFeature, OverviewFeature, SequenceFeature,
    TimelineFeature, ExportFeature, CompareFeature, CheckFeature,
):  # fmt: skip
    """List, fields and bytes of one capture, with all features."""

    ESCAPE_ORDER: ClassVar[EscapeSteps] = (
        RowSearch.stop_row_search,
        LongMessagesFeature.cancel_jump,
        FilterFeature.stop_filter,
        FilterFeature.clear_filter,
    )

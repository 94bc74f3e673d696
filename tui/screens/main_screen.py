"""The main screen: the panes of `core_screen.py`, and what a user does with them, a file in `features/` each."""

from typing import ClassVar

from tui.features.check import CheckFeature
from tui.features.clipboard import ClipboardFeature
from tui.features.colors import ColorsFeature
from tui.features.columns import ColumnsFeature
from tui.features.commands import CommandsFeature
from tui.features.compare import CompareFeature
from tui.features.connection import ConnectionFeature
from tui.features.decode_as import DecodeAsFeature
from tui.features.export import ExportFeature
from tui.features.filter import FilterFeature
from tui.features.findings import FindingsFeature
from tui.features.follow import FollowFeature
from tui.features.follow_text import FollowTextFeature
from tui.features.history import HistoryFeature
from tui.features.io_graph import IoGraphFeature
from tui.features.long_messages import LongMessagesFeature
from tui.features.marks import MarksFeature
from tui.features.navigation import NavigationFeature
from tui.features.overview import OverviewFeature
from tui.features.panes import PanesFeature
from tui.features.records import RecordsFeature
from tui.features.row_search import RowSearch
from tui.features.saved import ProfilesFeature
from tui.features.search import SearchFeature
from tui.features.sequence import SequenceFeature
from tui.features.slow_exchanges import SlowExchangesFeature
from tui.features.sort import SortFeature
from tui.features.timelines import TimelineFeature
from tui.features.times import TimesFeature
from tui.features.value_actions import ValueActionsFeature
from tui.screens.core_screen import EscapeSteps


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

"""How the list shows rows: columns, colors, time format, sort order, marks. Without a screen."""

from dataclasses import dataclass, field

from tui.list_columns import ListColumns
from tui.row_colors import ColorBy
from tui.row_marks import RowMarks
from tui.row_order import SortOrder
from tui.saved import Saved
from tui.time_format import TimeFormat


@dataclass
class Appearance:
    """Shared by the list, which draws by it, and by the features that change it."""

    columns: ListColumns = field(default_factory=ListColumns)
    color_by: ColorBy = ColorBy.SEVERITY
    time: TimeFormat = TimeFormat.START
    reference: int | None = None
    """The row that times count from; None for the first one."""
    sorting: SortOrder | None = None
    marks: RowMarks = field(default_factory=RowMarks)
    saved: Saved = field(default_factory=Saved)
    """Filters, profiles and coloring rules."""

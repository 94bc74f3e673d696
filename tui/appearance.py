"""How the list shows rows: what the user chose of columns, colours and times. Without a screen."""

from dataclasses import dataclass, field

from tui.colouring import Colouring
from tui.columns import Columns
from tui.marks import Marks
from tui.sorting import Sorting
from tui.times import TimeFormat


@dataclass
class Appearance:
    """Shared by the list, which draws by it, and by those who change it."""

    columns: Columns = field(default_factory=Columns)
    colouring: Colouring = Colouring.SEVERITY
    time: TimeFormat = TimeFormat.START
    reference: int | None = None
    """The row that times count from, where the user chose one."""
    sorting: Sorting | None = None
    marks: Marks = field(default_factory=Marks)

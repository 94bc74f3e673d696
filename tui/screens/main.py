"""The main screen: the panes, and all that a user does with them. A new feature is a class in a file of its own."""

from tui.screens.against import Against
from tui.screens.along import GoingAlong
from tui.screens.coloured import Coloured
from tui.screens.columns import Columned
from tui.screens.exporting import Exporting
from tui.screens.filtering import Filtering
from tui.screens.findings import Explaining
from tui.screens.history import Returning
from tui.screens.ladder import Laddering
from tui.screens.marking import Marking
from tui.screens.moving import Moving
from tui.screens.overview import Overviewing
from tui.screens.pointing import Pointing
from tui.screens.reading import Reading
from tui.screens.rooms import Rooms
from tui.screens.search import Searching
from tui.screens.slowness import Slowness
from tui.screens.sorting import Sorted
from tui.screens.timelines import Timelining
from tui.screens.timing import Timing
from tui.screens.yanking import Yanking


class MainScreen(
    Returning, Moving, GoingAlong, Searching, Slowness, Explaining, Reading, Pointing, Yanking, Filtering, Rooms,
    Sorted, Columned, Timing, Coloured, Marking, Overviewing, Laddering, Timelining, Exporting, Against,
):  # fmt: skip
    """Everything at one glance."""

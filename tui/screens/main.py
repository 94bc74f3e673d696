"""The main screen: the panes, and all that a user does with them. A new feature is a class in a file of its own."""

from tui.screens.coloured import Coloured
from tui.screens.history import Returning
from tui.screens.ladder import Laddering
from tui.screens.moving import Moving
from tui.screens.overview import Overviewing
from tui.screens.rooms import Rooms
from tui.screens.sorting import Sorted
from tui.screens.timelines import Timelining
from tui.screens.timing import Timing


class MainScreen(Returning, Moving, Rooms, Sorted, Timing, Coloured, Overviewing, Laddering, Timelining):
    """Everything at one glance."""

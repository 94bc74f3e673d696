"""The diff screen, and all that a user does with it. A new feature is a class in a file of its own."""

from tui.screens.diff_along import Along
from tui.screens.diff_matching import Matching
from tui.screens.diff_rooms import DiffRooms
from tui.screens.diff_sharing import Sharing
from tui.screens.ignored import Ignoring


class DiffScreen(DiffRooms, Along, Matching, Sharing, Ignoring):
    """Two sides at one glance."""

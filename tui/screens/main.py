"""The main screen: the panes, and all that a user does with them. A new feature is a class in a file of its own."""

from tui.screens.history import Returning
from tui.screens.moving import Moving
from tui.screens.rooms import Rooms


class MainScreen(Returning, Moving, Rooms):
    """Everything at one glance."""

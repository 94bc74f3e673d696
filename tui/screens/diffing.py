"""The diff screen, and all that a user does with it. A new feature is a class in a file of its own."""

from tui.screens.diff_along import Along


class DiffScreen(Along):
    """Two sides at one glance."""

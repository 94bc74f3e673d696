"""A vertical scroll bar that appears where its widget is scrolled to.

Textual tells a scroll bar the position when that changes while the bar is shown. A widget that scrolls before its bar
is shown (rows and scrolling come in one step, the bar with the next layout) would have the bar's thumb at the top.
"""

from textual.widget import Widget


class PlacedScrollBar(Widget):
    """A widget whose scroll bar shows its position from the beginning."""

    def watch_show_vertical_scrollbar(self, is_shown: bool) -> None:
        if is_shown:
            self.vertical_scrollbar.position = self.scroll_y

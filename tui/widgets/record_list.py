"""The list of the record view: a line a record, read when it is drawn."""

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from tui.record_labels import columns_for, fitted, record_cells
from tui.records_model import RecordsModel
from tui.widgets.cell_list import CellList

ARROWS = {False: "▲", True: "▼"}


class RecordLines(CellList):
    """Records."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Exchange", tooltip="Go to the exchange, with the record selected",
                id="records.open"),
    ]  # fmt: skip

    class HeadingClicked(Message):
        """The heading of a column was clicked."""

        def __init__(self, column: str) -> None:
            super().__init__()
            self.column = column

    def __init__(self, model: RecordsModel, *, id: str) -> None:
        super().__init__(id=id)
        self._model = model
        self._typed = ""

    def head(self, width: int) -> str:
        """Return the heading for `width` cells."""
        words = []
        for column in columns_for(width):
            name = "Topic-partition" if column.name == "Topic" else column.name
            arrow = ARROWS[self._model.descending] if column.name == self._model.sorting else ""
            words.append(fitted(name + arrow, column))
        return " ".join(words)[1:]

    def cells(self, number: int, width: int) -> Sequence[tuple[str, str]]:
        """Return the cells of a line."""
        record = self._model.record(number)
        if record is None:
            return [("  not there any more", "dim")]
        places, at = self._model.places, self._model.at(number)
        above = self._model.at(number - 1) if number else -1
        repeats = above >= 0 and all(column[at] == column[above] for column in (places.topic, places.partition))
        return record_cells(record, columns_for(width), repeats=repeats)

    def grow(self, count: int) -> None:
        """Show more lines; the cursor and those that are drawn stay."""
        self.show(count, self.cursor)

    def action_go(self, number: int) -> None:
        """Go to the first record, the last, or the one whose number was typed before."""
        typed, self._typed = self._typed, ""
        self.cursor = int(typed) - 1 if typed else number if number >= 0 else self.count - 1

    def on_key(self, event: events.Key) -> None:
        if event.character is not None and event.character.isdecimal() and event.character.isascii():
            self._typed = (self._typed + event.character)[-9:]
        elif event.key not in ("g", "G"):
            self._typed = ""

    def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        if place is None or place.y != 0:
            super().on_click(event)
            return
        end = 2
        for column in columns_for(self.scrollable_content_region.width - 1):
            end += column.width + 1
            if place.x < end:
                self.post_message(self.HeadingClicked(column.name))
                return

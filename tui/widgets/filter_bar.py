"""The filter bar: the text, its progress, completions at the cursor, errors once the user pauses."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from dissector.core.text import clean
from tui.threads import call_on_ui
from tui.widgets.options import Options

if TYPE_CHECKING:  # the engine takes a tenth of a second to import: only for those who filter
    from dissector.filter import FilterError

MOST_OFFERED: Final = 200
PAUSE: Final = 0.4
"""Seconds without a key after which errors are shown."""


class Offer(NamedTuple):
    """A completion that replaces the characters from `start` to before `end`, and its description."""

    start: int
    end: int
    text: str
    words: str

    def put_into(self, line: Input) -> None:
        """Complete the text of a line, and go on behind it."""
        line.value = line.value[: self.start] + self.text + line.value[self.end :]
        line.cursor_position = self.start + len(self.text)


class FilterInput(Input):
    """The input. Up, down and tab choose a completion."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "take", "Complete", tooltip="Take the completion", id="filter.complete"),
        Binding("down", "offer(1)", "Next completion", show=False, tooltip="Next completion", id="filter.down"),
        Binding("up", "offer(-1)", "Previous completion", show=False, tooltip="Previous completion", id="filter.up"),
        Binding("enter", "apply", "Apply", tooltip="Show matching exchanges", id="filter.apply"),
        Binding("escape", "leave", "Cancel", tooltip="Leave the filter unchanged", id="filter.leave"),
    ]

    class ActionRequested(Message):
        """A key of the input that the bar handles."""

        def __init__(self, what: str, step: int = 0) -> None:
            super().__init__()
            self.what = what
            self.step = step

    def action_take(self) -> None:
        self.post_message(self.ActionRequested("take"))

    def action_offer(self, step: int) -> None:
        self.post_message(self.ActionRequested("offer", step))

    def action_apply(self) -> None:
        self.post_message(self.ActionRequested("apply"))

    def action_leave(self) -> None:
        self.post_message(self.ActionRequested("leave"))


class FilterBar(Vertical):
    """Shown while there is a filter, or one is being typed."""

    class Applied(Message):
        """The text was applied as the filter."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Cancelled(Message):
        """The user left the bar without a change."""

    def __init__(self, paths: Callable[[], Sequence[str]] = tuple, *, id: str) -> None:
        """`paths` returns paths that records have, to be offered. It is called in a thread."""
        super().__init__(id=id)
        self._paths = paths
        self._typing: Timer | None = None
        """Runs while the user types."""
        self._offers: Sequence[Offer] = ()
        self._chosen = False
        """Whether the user chose a completion: then Enter takes it."""

    def compose(self) -> ComposeResult:
        with Horizontal(id="filter-line"):
            yield Static("/", id="filter-sign", markup=False)
            yield FilterInput(id="filter-text", compact=True, select_on_focus=False)
            yield Static(id="filter-state", markup=False)
        yield Static(id="filter-error", markup=False)
        offers = Options(id="filter-offers", compact=True, markup=False)
        offers.can_focus = False
        yield offers

    @property
    def _input(self) -> FilterInput:
        return self.query_one(FilterInput)

    @property
    def text(self) -> str:
        """The text in the bar."""
        return self._input.value

    @property
    def is_open(self) -> bool:
        """Whether the user is typing."""
        return self._input.has_focus

    def edit(self, text: str, cursor: int | None = None) -> None:
        """Let the user edit this text."""
        self._stop_typing()
        self.set_class(True, "shown", "open")
        with self._input.prevent(Input.Changed):
            self._input.value = text
        self._input.cursor_position = len(text) if cursor is None else cursor
        self._input.focus()
        self.complain(None)

    def prepare(self, text: str) -> None:
        """Let the user edit this text, with completions at its end."""
        self.edit(text)
        self._complete(text, len(text))

    def correct(self, text: str, error: "FilterError") -> None:
        """Let the user correct this text."""
        self.edit(text, error.column)
        self.complain(error)

    def rest(self, text: str) -> None:
        """Stop editing: the bar stays as long as there is a filter."""
        self._stop_typing()
        self._input.value = text
        self.offer(())
        self.complain(None)
        self.set_class(bool(text), "shown")
        self.set_class(False, "open")

    def say(self, state: Text) -> None:
        """Show the progress, at the end of the line."""
        self.query_one("#filter-state", Static).update(state)

    def complain(self, error: "FilterError | None") -> None:
        """Show an error below the text, at its column; None for no error."""
        if error is None:
            self.query_one("#filter-error", Static).update("")
        else:
            self.call_after_refresh(self._draw_error, error.column, error.words)  # the text is laid out then

    def _draw_error(self, column: int, words: str) -> None:
        at = column - self._input.scroll_offset.x + self._input.region.x - self.region.x
        words, line = clean(words), Text()
        if at + 2 + len(words) <= self.size.width or at < len(words) + 2:
            line.append(" " * max(0, min(at, self.size.width - len(words) - 2)) + "▲ ", "bold").append(words)
        else:
            line.append(" " * (at - len(words) - 1) + words).append(" ▲", "bold")
        self.query_one("#filter-error", Static).update(line)

    def offer(self, offers: Sequence[Offer]) -> None:
        """Show completions at the cursor."""
        self._offers, self._chosen = offers[:MOST_OFFERED], False
        options = self.query_one(OptionList)
        options.clear_options()
        width = max((cell_len(clean(offer.text)) for offer in self._offers), default=0)
        options.add_options(
            Option(Text.assemble((set_cell_size(clean(offer.text), width + 2), "bold"), (clean(offer.words), "dim")))
            for offer in self._offers
        )
        options.set_class(bool(self._offers), "shown")
        if self._offers:
            options.highlighted = 0
            indent = self._input.region.x - self.region.x + self._offers[0].start - 2  # beside its border and padding
            options.styles.margin = (0, 0, 0, max(0, min(indent, self.size.width // 2)))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.is_open:
            text = event.value
            self._stop_typing()
            self.complain(None)
            self._typing = self.set_timer(PAUSE, lambda: self._check(text))
            self._complete(text, self._input.cursor_position)

    def _stop_typing(self) -> None:
        self.workers.cancel_group(self, "complete")
        if self._typing is not None:
            self._typing.stop()

    def _check(self, text: str) -> None:
        """Show the error of a text, unless that is the beginning of a completion: it is none yet."""
        from dissector.filter import FilterError, parse

        try:
            if text.strip():
                parse(text)
        except FilterError as error:
            if not any(offer.start <= error.column < self._input.cursor_position for offer in self._offers):
                self.complain(error)

    @work(thread=True, exclusive=True, group="complete")
    def _complete(self, text: str, cursor: int) -> None:
        """In a thread: the first time it reads all tables of the schema."""
        from dissector.filter import complete

        call_on_ui(self, self._offer_for, text, [Offer(*each) for each in complete(text, cursor, self._paths())])

    def _offer_for(self, text: str, offers: list[Offer]) -> None:
        # a completion that changes nothing is not offered
        if self.is_open and self.text == text:
            self.offer([each for each in offers if text[each.start : each.end] != each.text])

    def on_filter_input_action_requested(self, event: FilterInput.ActionRequested) -> None:
        event.stop()
        options = self.query_one(OptionList)
        if event.what == "offer" and self._offers:
            options.action_cursor_down() if event.step > 0 else options.action_cursor_up()
            self._chosen = True
        elif event.what == "take" or (event.what == "apply" and self._chosen):
            self._take(options.highlighted)
        elif event.what == "apply":
            self.post_message(self.Applied(self.text.strip()))
        elif event.what == "leave" and self._offers:
            self.offer(())
        elif event.what == "leave":
            self.post_message(self.Cancelled())

    def _take(self, number: int | None) -> None:
        """Put a completion into the text."""
        if number is not None and number < len(self._offers):
            self._offers[number].put_into(self._input)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option in event.option_list.options:  # others may be offered since
            self._take(event.option_index)

    def on_click(self, event: events.Click) -> None:
        """A click into the line begins editing."""
        if not self.is_open:
            self.edit(self.text)

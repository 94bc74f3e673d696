"""The messages that a proxy holds until a person decides about them, and what is in the one under the cursor."""

import time
from collections.abc import Callable
from typing import ClassVar, Final, Protocol

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from dissector.capture.held_messages import HeldMessage, Interception
from dissector.core.text import byte_size, clean
from dissector.core.times import SECOND
from dissector.protocol.schema.loader import api_name
from tui.screens.dialog import Dialog
from tui.widgets.options import Options

SECONDS_BETWEEN: Final = 0.3
_KEYS: Final = "a send · A all · e edit · x drop · X close · + time · i filter · JK scroll"


class Holding(Protocol):
    """What can be done with held messages. All but `state` happens in a thread; what went wrong is a notification."""

    def state(self) -> Interception:
        """Return what is held."""

    def show(self, held: HeldMessage, then: Callable[[int, str], object]) -> None:
        """Call `then` with the number and the text of a message."""

    def send_on(self, held: HeldMessage) -> None:
        """Let it go on."""

    def send_all(self) -> None:
        """Let all go on."""

    def edit(self, held: HeldMessage) -> None:
        """Open it in the editor, and let what that makes of it go on."""

    def drop(self, held: HeldMessage) -> None:
        """Drop it."""

    def close(self, held: HeldMessage) -> None:
        """Close its connection."""

    def wait(self, held: HeldMessage) -> None:
        """Give it more time."""

    def ask(self) -> None:
        """Ask what is to be held."""


class HeldScreen(Dialog[HeldMessage | None]):
    """Returns a message to whose row to go."""

    DEFAULT_CSS = """
    HeldScreen { align: center middle; }
    #held { width: 98%; height: 94%; border: round $primary; background: $panel; }
    #held-head { height: 1; padding: 0 1; text-style: bold; }
    #held-list { height: auto; max-height: 40%; border: none; background: $panel; scrollbar-size: 1 1;
                 text-wrap: nowrap; text-overflow: ellipsis; }
    #held-fields { height: 1fr; border-top: solid $primary; padding: 0 1; scrollbar-size: 1 1; }
    #held-keys { height: 1; padding: 0 1; color: $foreground; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,H", "dismiss", "Close", tooltip="Close; held messages continue to wait", id="held.close"),
        Binding("a", "send_on", "Send on", tooltip="Send the message on unchanged", id="held.send_on"),
        Binding("A", "send_all", "Send all on", tooltip="Send all messages on unchanged", id="held.send_all"),
        Binding("e", "edit", "Edit", tooltip="Edit the message as JSON in $EDITOR, then send it on", id="held.edit"),
        Binding("x", "drop", "Drop", tooltip="Drop the message; its connection stays open", id="held.drop"),
        Binding("X", "close_connection", "Close connection", tooltip="Close its connection instead", id="held.kill"),
        Binding("plus", "wait", "More time", key_display="+", tooltip="Restart the time limit of the message",
                id="held.wait"),
        Binding("i", "ask", "Intercept…", tooltip="Choose which messages to hold", id="held.intercept"),
        Binding("j", "down", "Down", show=False, id="held.down"),
        Binding("k", "up", "Up", show=False, id="held.up"),
        Binding("J,space,ctrl+d", "scroll(1)", "Fields down", show=False, tooltip="Scroll the fields down",
                id="held.fields_down"),
        Binding("K,b,ctrl+u", "scroll(-1)", "Fields up", show=False, tooltip="Scroll the fields up",
                id="held.fields_up"),
    ]  # fmt: skip

    def __init__(self, holding: Holding) -> None:
        super().__init__()
        self._holding = holding
        self._state = Interception()
        self._drawn: list[str] = []
        self._fields_of: int | None = 0
        """The number of the message whose fields are shown, or will be; None if nothing waits, 0 at first."""

    def compose(self) -> ComposeResult:
        with Vertical(id="held") as box:
            yield Static(id="held-head", markup=False)
            yield Options(id="held-list", markup=False)
            with VerticalScroll(id="held-fields", can_focus=False):
                yield Static(id="held-text", markup=False)
            yield Static(_KEYS, id="held-keys", markup=False)
        box.border_title = "Held messages"
        box.border_subtitle = "enter goes to the row · esc closes"

    @property
    def _list(self) -> OptionList:
        return self.query_one(OptionList)

    @property
    def chosen(self) -> HeldMessage | None:
        """The message under the cursor."""
        at = self._list.highlighted
        return self._state.held[at] if at is not None and at < len(self._state.held) else None

    def on_mount(self) -> None:
        self._list.focus()
        self._show()
        self.set_interval(SECONDS_BETWEEN, self._show)

    def _show(self) -> None:
        """Draw what is another: time runs."""
        before = self.chosen
        self._state = self._holding.state()
        self.query_one("#held-head", Static).update(Text(clean(_head(self._state))))
        lines = [_line(each) for each in self._state.held]
        if lines != self._drawn:
            self._drawn = lines
            options = self._list
            options.clear_options()
            options.add_options(Option(Text(each)) for each in lines)
            numbers = [each.number for each in self._state.held]
            at = numbers.index(before.number) if before is not None and before.number in numbers else 0
            options.highlighted = at if lines else None
        self._show_fields()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self._show_fields()

    def _show_fields(self) -> None:
        chosen = self.chosen
        number = None if chosen is None else chosen.number
        if number == self._fields_of:
            return
        self._fields_of = number
        self._draw_text("" if chosen is not None else "no message is held")
        if chosen is not None:
            self._holding.show(chosen, self._take_text)

    def _take_text(self, number: int, text: str) -> None:
        if number == self._fields_of:
            self._draw_text(text)

    def _draw_text(self, text: str) -> None:
        self.query_one("#held-text", Static).update(Text("\n".join(map(clean, text.splitlines()))))
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if self.chosen is not None:
            self.dismiss(self.chosen)

    def _with_chosen(self, act: Callable[[HeldMessage], object]) -> None:
        if (chosen := self.chosen) is not None:
            act(chosen)

    def action_send_on(self) -> None:
        self._with_chosen(self._holding.send_on)

    def action_send_all(self) -> None:
        self._holding.send_all()

    def action_edit(self) -> None:
        self._with_chosen(self._holding.edit)

    def action_drop(self) -> None:
        self._with_chosen(self._holding.drop)

    def action_close_connection(self) -> None:
        self._with_chosen(self._holding.close)

    def action_wait(self) -> None:
        self._with_chosen(self._holding.wait)

    def action_ask(self) -> None:
        self._holding.ask()

    def action_down(self) -> None:
        self._list.action_cursor_down()

    def action_up(self) -> None:
        self._list.action_cursor_up()

    def action_scroll(self, pages: int) -> None:
        """Scroll the fields, a page less a line."""
        fields = self.query_one(VerticalScroll)
        fields.scroll_relative(y=pages * max(1, fields.size.height - 1), animate=False)


def _head(state: Interception) -> str:
    """Say what is held."""
    if state.text is None:
        words = "nothing is intercepted: i sets a filter"
    else:
        words = f"intercepted: {state.text or 'everything'}"
    words += f" · {state.limit:g} s each" if state.limit else ""
    return words + (f" · {state.missed:,} sent on because too many were held" if state.missed else "")


def _line(held: HeldMessage) -> str:
    left = max(0, held.until_ns - time.time_ns()) // SECOND
    arrow, side = ("→", "request ") if held.from_client else ("←", "response")
    what = f"{api_name(held.api_key)} v{held.api_version}"
    who = f"{held.client}{f' {held.client_id}' if held.client_id else ''}"
    return clean(
        f"{left:>4} s  {arrow} {side} {what:<22} {byte_size(held.size):>9}  {who}, correlation id {held.correlation_id}"
    )

"""The rules for faults of a proxy: which are armed, what became of each, and the last times that they fired."""

import time
from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import ClassVar, Final, NamedTuple

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from dissector.capture.fault_counts import FaultCount, FiredFault
from dissector.core.text import clean
from dissector.protocol.schema.loader import api_name
from tui.screens.dialog import Dialog
from tui.widgets.line_list import INDENT, LEAST_TEXT
from tui.widgets.options import Options

SECONDS_BETWEEN: Final = 0.3
ARMED, DISARMED = "●", "○"
LONGEST: Final = 300
"""Characters of a rule that are shown, on as many lines as they need."""
_LEAST_RULE: Final = 40
"""Cells for a rule from which on it is beside its counts, and not below them."""
_AROUND: Final = 5
"""Cells of the borders, of the padding and of a scroll bar."""
_RULE, _FIRED = "rule", "fired"


class FaultsState(NamedTuple):
    """What is shown."""

    counts: Sequence[FaultCount]
    fired: Sequence[FiredFault]


class FaultsScreen(Dialog[FiredFault | None]):
    """Lists rules, then the last times that they fired, the newest first. Returns one of these to go to."""

    DEFAULT_CSS = """
    FaultsScreen { align: center middle; }
    #faults { width: 96%; height: auto; max-height: 90%; border: round $primary; background: $panel; }
    #faults-head { height: 1; padding: 0 1; color: $foreground; text-style: bold; }
    #faults-list { height: auto; max-height: 100%; border: none; background: $panel; scrollbar-size: 1 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,exclamation_mark", "dismiss", "Close", id="faults.close"),
        Binding("space", "arm", "Arm/disarm", tooltip="Arm or disarm the rule", id="faults.arm"),
        Binding("n", "add", "New rule", tooltip="Type a rule and arm it", id="faults.add"),
        Binding("j", "down", "Down", show=False, id="faults.down"),
        Binding("k", "up", "Up", show=False, id="faults.up"),
    ]

    def __init__(
        self, look: Callable[[], FaultsState], arm: Callable[[int, bool], object], add: Callable[[], object]
    ) -> None:
        """`look` returns what is to be shown, `arm` gets a rule's number, from 1, and whether it is to be armed, `add`
        asks for another rule."""
        super().__init__()
        self._look = look
        self._arm = arm
        self._add = add
        self._shown = FaultsState((), ())
        self._drawn: tuple[FaultsState, int] | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="faults") as box:
            yield Static(id="faults-head", markup=False)
            yield Options(id="faults-list", markup=False)
        box.border_title = "Faults"
        box.border_subtitle = "space arms, disarms · n adds one · enter goes to the row · esc closes"

    @property
    def _list(self) -> OptionList:
        return self.query_one(OptionList)

    def on_mount(self) -> None:
        self._list.focus()
        self._show()
        self.set_interval(SECONDS_BETWEEN, self._show)

    def on_resize(self) -> None:
        self._show()

    def _show(self) -> None:
        """Draw again if something is another."""
        self._shown = self._look()
        drawn = self._shown, self.app.size.width
        if self._drawn == drawn:
            return
        self._drawn = drawn
        options = self._list
        at = options.highlighted
        chosen = options.get_option_at_index(at).id if at is not None else None
        options.clear_options()
        options.add_options(self._options())
        armed = sum(each.is_armed for each in self._shown.counts)
        words = f"{armed} of {len(self._shown.counts)} armed" if self._shown.counts else "no rules: n adds one"
        self.query_one("#faults-head", Static).update(words)
        self._choose(chosen)

    def _choose(self, chosen: str | None) -> None:
        """Let the cursor stay where it was."""
        ids = [each.id for each in self._list.options]
        if ids:
            self._list.highlighted = ids.index(chosen) if chosen is not None and chosen in ids else 0  # headings: None

    def _options(self) -> list[Option]:
        counts, fired = self._shown
        room = self.app.size.width * 96 // 100 - _AROUND
        rules = [Option(_rule_line(each, room), id=f"{_RULE} {number}") for number, each in enumerate(counts, 1)]
        last = [Option(self._fired_line(each), id=f"{_FIRED} {each}") for each in reversed(fired)]
        heading = [Option(Text(" last fired", "bold"), disabled=True)] if last else []
        return [*rules, *heading, *last]

    def _fired_line(self, fired: FiredFault) -> Text:
        when = time.strftime("%H:%M:%S", time.localtime(fired.time_ns / 1e9))
        line = Text(f"   {when}  ").append(f"{self._shown.counts[fired.rule - 1].name:<8} ", "bold")
        line.append(clean(f"{api_name(fired.api_key)} of {fired.client}, correlation id {fired.correlation_id}"))
        return line

    def action_arm(self) -> None:
        kind, number = self._highlighted()
        if kind == _RULE:
            self._arm(number + 1, not self._shown.counts[number].is_armed)

    def _highlighted(self) -> tuple[str, int]:
        """Return what the cursor is on, and its number from 0; an empty word for nothing."""
        at, rules = self._list.highlighted, len(self._shown.counts)
        if at is None:
            return "", 0
        return (_RULE, at) if at < rules else (_FIRED, len(self._shown.fired) - 1 - (at - rules - 1))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        kind, number = self._highlighted()
        if kind == _RULE:
            self.action_arm()
        elif kind == _FIRED:
            self.dismiss(self._shown.fired[number])

    def action_add(self) -> None:
        self._add()

    def action_down(self) -> None:
        self._list.action_cursor_down()

    def action_up(self) -> None:
        self._list.action_cursor_up()


def _rule_line(count: FaultCount, width: int) -> Text:
    """Return a rule in lines of `width` cells, below its own beginning where there is room."""
    mark = ARMED if count.is_armed else DISARMED
    line = Text(f" {mark} ", "bold" if count.is_armed else "dim")
    line.append(f"{clean(count.name):<8} ", "bold").append(f"fired {count.fired:,} of {count.matched:,}  ")
    if count.unable:
        line.append(f"{count.unable:,} could not be changed  ", "dim")
    indent = line.cell_len if width - line.cell_len >= _LEAST_RULE else INDENT
    line.append("" if indent == line.cell_len else f"\n{' ' * indent}")
    rule = count.rule if len(count.rule) <= LONGEST else f"{count.rule[:LONGEST]}…"
    parts = wrap(clean(rule), max(LEAST_TEXT, width - indent), break_on_hyphens=False)
    return line.append(f"\n{' ' * indent}".join(parts), "" if count.is_armed else "dim")

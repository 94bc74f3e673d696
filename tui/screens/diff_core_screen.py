"""The panes of the diff screen: causes or pairs; below, the fields of the selected pair side by side, and the bytes of
both.

The comparison runs in a thread, and runs again when the user matches exchanges by hand or swaps the sides.

Of two exchanges (`pair`) the fields are shown as the wire has them, in place of a list with one pair.
"""

from typing import ClassVar, Final

from rich.text import Text
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Static
from textual.worker import get_current_worker

from dissector.analysis.diff import DiffEntry, DiffResult, DiffSide, ManualMatches
from dissector.capture import CaptureError
from dissector.core.text import clean
from tui.diff_labels import NAMES, cause_text, diff_title, exact_result, line_text
from tui.diff_model import SIDES, DiffModel, row_of
from tui.diff_runner import compare
from tui.exchange_model import ExchangeModel
from tui.feature import FeatureScreen
from tui.fitted_text import fitted_lines
from tui.labels import byte_readings, hex_place, inspector_text
from tui.messages import CaptureFailed
from tui.threads import Stopped, call_on_ui
from tui.widgets.bytes_pane import BytesPane
from tui.widgets.cell_list import CellList
from tui.widgets.diff_lists import CauseList, DifferenceList, PairList
from tui.widgets.key_footer import KeyFooter

FIRST: Final = 2
"""Number of screens if this one was opened first: Textual has a default screen below."""
INSPECTOR_LINES: Final = 4


class DiffCoreScreen(FeatureScreen):
    """Causes or pairs; fields and bytes of both sides."""

    AUTO_FOCUS = ""
    CSS = """
    #causes, #pairs { height: 9fr; }
    #differences { height: 7fr; border-top: solid $boost; border-title-color: $secondary; }
    #both { height: 6fr; }
    #inspector { height: 4; }
    #bytes-a, #bytes-b {
      width: 1fr; border-top: solid $boost; border-title-color: $secondary; background: $surface;
      scrollbar-size: 1 1; overflow-x: hidden;
    }
    #bytes-b { border-left: solid $boost; }
    #differences:focus, #bytes-a:focus, #bytes-b:focus {
      border-top: solid $primary; border-title-color: $primary; border-title-style: bold;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "app.help", "Help", key_display="?", tooltip="Show the keys", id="diff.help"),
        Binding("tab", "app.focus_next", "Pane", tooltip="Next pane", id="diff.next_pane"),
        Binding("shift+tab", "app.focus_previous", "Previous pane", show=False, tooltip="Previous pane",
                id="diff.previous_pane"),
        Binding("v", "view", "Causes↔Pairs", tooltip="Switch between causes of differences and pairs of exchanges",
                id="diff.view"),
        Binding("q", "leave", "Back", tooltip="Close the comparison", id="diff.leave"),
        Binding("escape", "escape", "Step back", show=False,
                tooltip="Back to the causes; then close the comparison", id="diff.step_back"),
    ]  # fmt: skip

    def __init__(
        self, a: DiffSide, b: DiffSide, connections: ManualMatches = (), *, pair: tuple[int, int] | None = None
    ) -> None:
        """`connections` are pairs of A and B that the user matched; `pair` the only rows, if each side has one."""
        super().__init__()
        self.ends = (a, b)
        self.is_exact = pair is not None
        """Whether two exchanges are compared, as the wire has them."""
        self.model: DiffModel | None = None
        self.matched: ManualMatches = () if pair is None else (pair,)
        """Rows of A and of B that the user matched."""
        self.connections = connections
        self._progress = ""
        self._shows_pairs = False

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield Static(id="notice", markup=False)
        yield Static(id="empty", markup=False)
        yield CauseList(id="causes")
        yield PairList(id="pairs")
        yield DifferenceList(id="differences")
        with Horizontal(id="both"):
            for name, side in zip(("a", "b"), self.ends, strict=True):
                yield BytesPane(ExchangeModel(side.capture), id=f"bytes-{name}")
        yield Static(id="inspector", markup=False)
        yield KeyFooter()

    @property
    def comparison(self) -> DiffResult | None:
        """The comparison, once it is done."""
        return self.model.comparison if self.model is not None else None

    @property
    def causes(self) -> CauseList:
        return self.query_one(CauseList)

    @property
    def pairs(self) -> PairList:
        return self.query_one(PairList)

    @property
    def differences(self) -> DifferenceList:
        return self.query_one(DifferenceList)

    @property
    def panes(self) -> list[BytesPane]:
        """The bytes of A and of B."""
        return [self.query_one(f"#bytes-{name}", BytesPane) for name in ("a", "b")]

    @property
    def entry(self) -> DiffEntry | None:
        """The cause under the cursor."""
        return self.causes.entries[self.causes.cursor] if self.causes.count else None

    @property
    def shows_pairs(self) -> bool:
        return self._shows_pairs

    def on_mount(self) -> None:
        self.show_view(pairs=False)
        self.compare()

    def on_resize(self) -> None:
        for each in self.features:
            each.resized()
        self.draw_title()
        self.draw_inspector()

    def compare(self) -> None:
        """Compare, or compare again: the old comparison is shown until the new one is done."""
        self._compare(self.ends, self.connections, self.matched)

    @work(thread=True, exclusive=True, group="compare")
    def _compare(self, ends: tuple[DiffSide, DiffSide], connections: ManualMatches, rows: ManualMatches) -> None:
        worker = get_current_worker()

        def report(words: str) -> None:
            call_on_ui(self, self._show_progress, words)

        try:
            comparison = compare(ends[0], ends[1], connections, rows, report, lambda: worker.is_cancelled)
            model = DiffModel(comparison, ends[0].capture, ends[1].capture, is_exact=self.is_exact)
            if self.is_exact:
                model.choose(next(iter(comparison.pairs), None))  # long messages are traced here, not where it blocks
        except Stopped:
            return
        except CaptureError as error:  # a pipe turned out to be no capture: reported when the screen is closed
            if not worker.is_cancelled:
                self.app.call_from_thread(self.post_message, CaptureFailed(error))
            return
        call_on_ui(self, self._show_comparison, model)

    def _show_progress(self, words: str) -> None:
        self._progress = words
        self.draw_title()

    def _show_comparison(self, model: DiffModel) -> None:
        """Show a comparison, at the same position as the one before."""
        before, self._progress = self.model, ""
        if before is not None:
            model.show_equal(shown=not before.hides_equal)
            model.shows_all_fields = before.shows_all_fields
        self.model = self.pairs.model = model
        self.pairs.matched, self.pairs.marked = frozenset(self.matched), None
        self.causes.entries = model.comparison.entries
        for pane, side in zip(self.panes, model.sides, strict=True):
            pane.set_model(side)
        self.causes.show(len(self.causes.entries), self.causes.cursor if before is not None else self._first_cause())
        place = model.place_shown_by(before) if before is not None else None
        self.pairs.show(len(model.shown), model.shown.index(place) if place in model.shown else 0)
        self._draw_notices()
        self.show_view(pairs=self.shows_pairs or self.is_exact or model.comparison.is_same)
        if self.shows_pairs:
            self.choose_pair(self.pairs.cursor)
        else:
            self.preview()
        self.draw_title()

    def _first_cause(self) -> int:
        """Return the first cause that a pair can show, so that a pair is visible at once."""
        causes = enumerate(self.causes.entries)
        return next((n for n, each in causes if each.row_a is not None or each.row_b is not None), 0)

    def show_view(self, *, pairs: bool) -> None:
        """Show the pairs or the causes; the focus stays."""
        self._shows_pairs = pairs
        self.pairs.display, self.causes.display = pairs and not self.is_exact, not pairs
        if self.is_exact or self.focused in (None, self.pairs, self.causes):
            (self.causes if not pairs else self.differences if self.is_exact else self.pairs).focus()
        self.refresh_bindings()

    def _draw_notices(self) -> None:
        """Draw problems of the files, and the sides without anything to compare."""
        comparison = self.comparison
        if comparison is None:
            return
        sides = zip(NAMES, (comparison.a, comparison.b), strict=True)
        words = [f"{name} is {clean(side.label)}: no Kafka requests" for name, side in sides if not side.exchanges]
        problems = dict.fromkeys(problem.message for side in self.ends for problem in side.capture.problems)
        notice = self.query_one("#notice", Static)
        notice.update(Text("\n".join(f"! {clean(message)}" for message in problems)))
        notice.set_class(bool(problems), "shown")
        empty = self.query_one("#empty", Static)
        empty.update(Text("\n".join(words), justify="center"))
        empty.set_class(bool(words), "shown")
        for selector in ("#differences", "#both"):
            self.query_one(selector).set_class(bool(words), "hidden")

    def draw_title(self) -> None:
        """Draw both names, and the result or the progress."""
        width = self.app.size.width - 2
        state = self._progress or (exact_result(self.model) if self.is_exact and self.model is not None else "")
        title = diff_title(self.ends, self.comparison, state, len(self.matched), width)
        self.query_one("#title", Static).update(title)

    def choose_pair(self, position: int) -> None:
        """Show a pair by its position in `shown`."""
        if self.model is None or not 0 <= position < len(self.model.shown):
            return
        self.show_pair(self.model.shown[position])

    def show_pair(self, place: int | None) -> None:
        """Show the fields and bytes of a pair of the comparison; nothing for None."""
        model = self.model
        if model is None:
            return
        model.choose(None if place is None else model.comparison.pairs[place])
        self.draw_pair()

    def draw_pair(self) -> None:
        """Draw the lines after they changed, or after another was selected."""
        if self.model is not None:
            self.differences.show_lines(self.model)
            self.draw_line()

    def draw_line(self) -> None:
        """Draw the bytes of the selected field on both sides."""
        model = self.model
        if model is None:
            return
        for pane in self.panes:
            pane.update()
        self._draw_places(model)
        pair = model.pair
        rows = [] if pair is None else [row_of(pair, side) for side in SIDES]
        labels = [
            f"{name} {row + 1} {clean(model.api(n, row))}"
            for n, (name, row) in enumerate(zip(NAMES, rows, strict=False))
            if row is not None
        ]
        words = " ⇄ ".join(labels) or "no pair shows it"
        same = " · no differences; = shows all fields" if labels and not model.lines else ""
        self.differences.border_title = words + same
        self.draw_inspector()

    def _draw_places(self, model: DiffModel) -> None:
        """Draw above the bytes where the selected field is."""
        for name, pane, side in zip(NAMES, self.panes, model.sides, strict=True):
            node, part = side.node, side.side if side.exchange is not None else "none"
            span = f" {hex_place(node.start, node.end)}" if node is not None and node.size else ""
            pane.border_title = f"{name} · {part}{span}"

    def draw_inspector(self, extra: str = "") -> None:
        """Draw the line at the bottom: the cause, or the path of the selected field."""
        text = Text()
        if extra:
            text.append(f"{extra} · ", "bold")
        entry = self.entry if self.focused is self.causes else self.model.cause if self.model is not None else None
        if entry is not None and not extra:
            text.append(cause_text(entry))
        elif self.model is not None and self.model.lines:
            side = next((each for each in self.model.sides if each.node is not None), None)
            if side is not None and side.traced is not None:
                text.append_text(Text(" · ").join(inspector_text(side.node, side.traced.message, side.side)))
            else:
                text.append(line_text(self.model, self.model.lines[self.model.line]))
        width = self.app.size.width - 2
        self.query_one("#inspector", Static).update(fitted_lines(self.app.console, text, width, INSPECTOR_LINES))

    @on(CellList.LineChosen, "#pairs")
    def _pair_chosen(self, event: CellList.LineChosen) -> None:
        if event.is_current:
            self.choose_pair(event.number)

    @on(CellList.LineChosen, "#causes")
    def _cause_chosen(self) -> None:
        self.preview()

    @on(CellList.LineChosen, "#differences")
    def _line_chosen(self, event: CellList.LineChosen) -> None:
        if self.model is not None and event.is_current:
            self.model.choose_line(event.number)
            self.draw_line()

    @on(CellList.LineOpened, "#pairs")
    def _pair_opened(self) -> None:
        self.differences.focus()

    def preview(self) -> None:
        """Show the first pair that shows the cause under the cursor."""
        entry = self.entry
        if entry is not None:
            self._find_shown(entry)

    @work(thread=True, exclusive=True, group="seek")
    def _find_shown(self, entry: DiffEntry) -> None:
        """Search in a thread: with many pairs it may take a while."""
        worker, model = get_current_worker(), self.model
        if model is None:
            return
        place = model.first_shown(entry, lambda: worker.is_cancelled)
        call_on_ui(self, self._preview, model, entry, place)

    def _preview(self, model: DiffModel, entry: DiffEntry, place: int | None) -> None:
        if model is self.model and not self.shows_pairs:
            self.show_pair(place)
            model.choose_line(model.line_of_cause(entry))
            self.draw_pair()

    def on_bytes_pane_byte_chosen(self, event: BytesPane.ByteChosen) -> None:
        """Select the field of a byte, on both sides if the other has it too."""
        model = self.model
        side = self.panes.index(event.pane)
        if model is None or (source := model.sides[side].source) is None or source.data is not event.data:
            return
        traced = model.sides[side].traced
        node = traced.node_at(source.number, event.offset) if traced is not None else None
        if node is not None:
            line = model.line_of(side, node)
            if line is not None:
                model.choose_line(line)
                self.differences.show_lines(model)
            model.sides[side].node = node
            for pane in self.panes:
                pane.refresh()
            self._draw_places(model)
        self.draw_inspector(byte_readings(event.data, event.offset))

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        self.draw_inspector()

    def action_view(self) -> None:
        """Switch between causes and pairs."""
        if self.model is None:
            return
        self.show_view(pairs=not self.shows_pairs)
        if self.shows_pairs:
            self.choose_pair(self.pairs.cursor)
        else:
            self.lift_cause()
            self.preview()

    def lift_cause(self) -> None:
        """Stop following a cause."""
        if self.model is not None:
            self.model.cause = None

    def return_to_causes(self) -> bool:
        """Return to the causes from the pairs of one of them."""
        follows_cause = self.model is not None and self.model.cause is not None
        if follows_cause:
            self.action_view()
        return follows_cause

    def leave_comparison(self) -> bool:
        """Return to the screen below; if there is none, quit."""
        self.action_leave()
        return True

    def action_leave(self) -> None:
        self.workers.cancel_node(self)
        if len(self.app.screen_stack) > FIRST:
            self.dismiss()
        else:
            self.app.exit()

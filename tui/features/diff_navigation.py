"""Goes from difference to difference: fields, pairs, the pairs of a cause; from request to response."""

from typing import ClassVar

from textual.binding import Binding
from textual.worker import get_current_worker

from tui.diff_model import DiffModel
from tui.feature import ScreenFeature, work
from tui.screens.diff_core_screen import DiffCoreScreen
from tui.threads import call_on_ui
from tui.widgets.cell_list import CellList


class DiffNavigationFeature(ScreenFeature[DiffCoreScreen]):
    """Goes from one difference to the next."""

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("n", "difference(1)", "Next", tooltip="Next difference; when following a cause, its next pair",
                id="diff.next"),
        Binding("N", "difference(-1)", "Previous", show=False, tooltip="Previous difference", id="diff.previous"),
        Binding("f8,ctrl+down", "step(1)", "Next pair", show=False, tooltip="Next line of the list, from any pane",
                id="diff.next_pair"),
        Binding("f7,ctrl+up", "step(-1)", "Previous pair", show=False,
                tooltip="Previous line of the list, from any pane", id="diff.previous_pair"),
        Binding("r", "flip", "Req↔Resp", tooltip="Show the other message of both exchanges", id="diff.flip"),
        Binding("equals_sign", "equal", "Equal", key_display="=",
                tooltip="Show or hide equal pairs, or equal fields of the pair", id="diff.equal"),
    ]  # fmt: skip

    def on_cell_list_line_opened(self, event: CellList.LineOpened) -> None:
        """Go to the first pair that shows a cause; n goes to the others."""
        entry, model = self.screen.entry, self.screen.model
        if event.control is not self.screen.causes or model is None or entry is None:
            return
        model.cause = entry
        if model.hides_equal:  # a pair whose differences are hidden as repeats may show it
            self._show_equal(shown=True)
        self._seek(0, 1, "shows it")

    def action_difference(self, step: int) -> None:
        model = self.screen.model
        if model is None:
            return
        if not self.screen.shows_pairs:
            self.screen.causes.cursor += step
            return
        line = model.next_line(step) if model.cause is None and model.pair is not None else None
        if line is not None:
            self.screen.differences.cursor = line
        else:
            self._seek(self.screen.pairs.cursor + step, step, "shows it" if model.cause is not None else "differs")

    @work(group="seek", thread=True, exclusive=True)
    def _seek(self, start: int, step: int, words: str) -> None:
        """Search a pair in a thread: with many pairs it may take a while."""
        worker, model = get_current_worker(), self.screen.model
        if model is None:
            return
        place = model.next_pair(start, step, lambda: worker.is_cancelled)
        if worker.is_cancelled:
            return
        if place is None and not self.screen.shows_pairs and model.cause is not None:
            # one side may have it in an exchange without a counterpart: go there
            place = model.said_at(model.cause)
        if place is None:
            which = "" if not self.screen.shows_pairs else "more " if step > 0 else "earlier "
            call_on_ui(self.screen, self.notify, f"no {which}pair {words}", timeout=2)
        call_on_ui(self.screen, self._found, model, place, step)

    def _found(self, model: DiffModel, place: int | None, step: int) -> None:
        if model is not self.screen.model:
            return
        if place is None:
            if model.cause is not None and not self.screen.shows_pairs:
                model.cause = None
            return
        position = model.nearest(place)
        self.screen.show_view(pairs=True)
        with self.screen.prevent(CellList.LineChosen):
            self.screen.pairs.cursor = position
        self.screen.choose_pair(position)
        if model.cause is not None:
            line = model.line_of_cause(model.cause)
        else:
            line = model.line if step > 0 else model.last_line()
        model.choose_line(line)
        self.screen.draw_pair()

    def action_step(self, lines: int) -> None:
        (self.screen.pairs if self.screen.shows_pairs else self.screen.causes).cursor += lines

    def action_flip(self) -> None:
        """Show the other message, at its first field that differs."""
        model = self.screen.model
        if model is None or model.pair is None:
            return
        now = next((side.side for side in model.sides if side.exchange is not None), "request")
        if not model.flip():
            self.notify(f"no {'response' if now == 'request' else 'request'}", timeout=2)
        self.screen.draw_pair()

    def action_equal(self) -> None:
        model = self.screen.model
        if model is None:
            return
        if self.screen.focused is self.screen.differences or self.screen.is_exact:
            model.shows_all_fields = not model.shows_all_fields
            model.relist()
            self.screen.draw_pair()
        elif self.screen.shows_pairs:
            self._show_equal(shown=model.hides_equal)

    def _show_equal(self, *, shown: bool) -> None:
        """Show or hide equal pairs; the cursor stays on its pair, or goes to the nearest one."""
        model = self.screen.model
        if model is None:
            return
        place = model.shown[self.screen.pairs.cursor] if model.shown else 0
        model.show_equal(shown=shown)
        cursor = model.nearest(place)
        self.screen.pairs.show(len(model.shown), cursor)
        self.screen.choose_pair(cursor)

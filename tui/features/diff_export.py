"""Exports from the diff screen: a difference to the clipboard, the report to a file, an exchange to the main screen."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar, Final

from textual.binding import Binding

from dissector.analysis.diff import DiffResult
from dissector.analysis.diff.report import diff_report
from dissector.analysis.diff.to_json import diff_to_json
from dissector.analysis.rendering import render_html, render_markdown, render_text
from dissector.core.files import private
from dissector.core.json_text import dumps
from dissector.core.text import clean
from tui.diff_labels import NAMES, cause_text, line_text, pair_text
from tui.diff_model import row_of
from tui.feature import ScreenFeature
from tui.messages import OpenDetail
from tui.screens.dialog import Choice, Menu
from tui.screens.diff_core_screen import DiffCoreScreen

FORMS: Final[tuple[tuple[str, str, Callable[[DiffResult], Iterable[str]]], ...]] = (
    ("Text", ".txt", lambda found: render_text(diff_report(found))),
    ("Markdown", ".md", lambda found: render_markdown(diff_report(found))),
    ("HTML", ".html", lambda found: render_html(diff_report(found))),
    ("JSON", ".json", lambda found: [dumps(diff_to_json(found)).decode()]),
)


class DiffExportFeature(ScreenFeature[DiffCoreScreen]):
    """Copies, writes and opens what the comparison found."""

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("x", "export", "Export", tooltip="Write the report to a file in the current folder", id="diff.export"),
        Binding("y", "copy", "Copy", show=False, tooltip="Copy the selected difference as text", id="diff.copy"),
        Binding("o", "open_row(0)", "Open A", show=False, tooltip="Open the exchange of A on the main screen",
                id="diff.open_a"),
        Binding("O", "open_row(1)", "Open B", show=False, tooltip="Open the exchange of B on the main screen",
                id="diff.open_b"),
    ]  # fmt: skip

    def action_export(self) -> None:
        if self.screen.comparison is None:
            return
        choices = [Choice(name, f"{self._file_name}{ending}") for name, ending, _ in FORMS]
        self.app.push_screen(Menu("Write report as", choices), self._export)

    @property
    def _file_name(self) -> str:
        """The name of the report; of labels only characters that any file system takes."""
        labels = ("".join(c if c.isalnum() or c in "-_." else "-" for c in end.label)[:60] for end in self.screen.ends)
        return "diff-" + "-".join(labels)

    def _export(self, chosen: int | None) -> None:
        if chosen is None or self.screen.comparison is None:
            return
        _, ending, render = FORMS[chosen]
        path = Path(self._file_name + ending)
        try:
            with open(path, "x", encoding="utf-8", opener=private) as file:
                file.writelines(f"{line}\n" for line in render(self.screen.comparison))
        except OSError as error:
            words = f"not written: {path.name}: {error.strerror or error}"
            self.notify(clean(words), severity="error", timeout=4)
        else:
            self.notify(f"wrote {path.name}")

    def action_copy(self) -> None:
        """The cause, the field or the pair under the cursor."""
        model = self.screen.model
        if model is None:
            return
        words = ""
        if self.screen.focused is self.screen.causes and self.screen.entry is not None:
            words = cause_text(self.screen.entry)
        elif self.screen.focused is self.screen.pairs and model.pair is not None:
            words = pair_text(model, model.pair)
        elif model.lines:
            words = line_text(model, model.lines[model.line])
        if words:
            self.app.copy_to_clipboard(words)
            self.notify(f"copied: {words}", timeout=3)

    def action_open_row(self, side: int) -> None:
        model = self.screen.model
        row = row_of(model.pair, side) if model is not None and model.pair is not None else None
        if model is None or row is None:
            self.notify(f"{NAMES[side]} has no exchange here", timeout=2)
            return
        shown = model.sides[side]
        path = shown.node.path if shown.node is not None else ""
        self.screen.post_message(OpenDetail(self.screen.ends[side].capture, row, shown.side, path))

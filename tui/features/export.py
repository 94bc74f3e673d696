"""Exports exchanges from the main screen to a file, in all export formats."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from textual import work
from textual.binding import Binding, BindingType

from dissector.export.command_line import format_rows
from dissector.export.formats import ExportFormat
from tui.features.whole_capture import NeedsWholeCapture
from tui.screens.menu import Choice, Menu
from tui.screens.prompt import Prompt
from tui.screens.write_dialog import Notify, WriteDialog

FORMATS: Final = tuple(ExportFormat)
REDACTED: Final = Choice("Redacted", "contents, names and secrets replaced")


class _RowSelection(NamedTuple):
    """Rows, from 0 and ascending, and their name in the file's name."""

    rows: Sequence[int]
    called: str


class ExportFeature(NeedsWholeCapture):
    """Asks for rows, format and file name; then writes."""

    FEATURE = "Export"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "export", "Export", tooltip="Write exchanges to a file: marked ones, those shown, or this one",
                id="main.export"),
    ]  # fmt: skip

    @work(group="export", exclusive=True)
    async def action_export(self) -> None:
        """Ask one thing after the other; closing a dialog cancels the export."""
        if not self.is_read() or not len(self.view):
            return
        wanted = await self._asked_rows()
        if wanted is None:
            return
        choices = [Choice(each.entry.label, each.entry.description) for each in FORMATS]
        at = await self.app.push_screen_wait(Menu("Write as", choices))
        if at is None:
            return
        form = FORMATS[at]
        whole = Choice("Unchanged", "all bytes, secrets too" if form.entry.needs_packets else "as on the screen")
        kinds = Menu("Contents", [whole, REDACTED])
        redact = await self.app.push_screen_wait(kinds) if form.entry.can_redact else 0
        if redact is None:
            return
        name = self._offered_name(wanted.called, form, redact=bool(redact))
        given = await self.app.push_screen_wait(Prompt(f"Write {_rows(wanted.rows)} to", name))
        if given is None or not given.strip():
            return
        outcome = await self.app.push_screen_wait(self._writing(Path(given.strip()), wanted, form, redact=bool(redact)))
        self.notify(outcome or "stopped: nothing written", markup=False, timeout=8)

    async def _asked_rows(self) -> _RowSelection | None:
        """Ask for the rows. Marked ones come first: whoever marked rows wants these."""
        marked = sorted(self.appearance.marks.marked)
        here = self.number
        offered = [(f"Marked, {_rows(marked)}", _RowSelection(marked, "marked"))] if marked else []
        shown = self.view.rows.tolist()
        words = "Shown" if self.view.is_filtered else "All"
        offered.append((f"{words}, {_rows(shown)}", _RowSelection(shown, words.lower())))
        offered.append((f"This row, {here + 1:,}", _RowSelection([here], str(here + 1))))
        at = await self.app.push_screen_wait(Menu("Export", [Choice(words) for words, _ in offered]))
        return None if at is None else offered[at][1]

    def _offered_name(self, called: str, form: ExportFormat, *, redact: bool) -> str:
        """Return a name that says what the file holds; of the capture's name characters that any file system takes."""
        path = Path(self.capture.names[0])
        stem = "live" if path.parent == Path("/dev/fd") else path.stem  # a live capture has a number for a name
        of = re.sub(r"[^\w.-]", "-", stem)[:60].lstrip("-.") or "capture"
        return f"{of}-{called}{'-redacted' if redact else ''}{form.entry.suffixes[0]}"

    def _writing(self, path: Path, wanted: _RowSelection, form: ExportFormat, *, redact: bool) -> WriteDialog:
        capture, marks = self.capture, self.appearance.marks
        chosen = None if len(wanted.rows) == len(capture) else format_rows(wanted.rows)
        comments = dict.fromkeys(marks.marked, "marked") | marks.comments

        def pieces(report: Notify) -> Iterator[bytes]:
            from dissector.export.exporter import ExportRequest, export_rows

            if form.entry.needs_findings:
                for _ in capture.examine():
                    pass
            return export_rows(capture, wanted.rows, ExportRequest(form, redact, chosen, comments=comments), report)

        return WriteDialog(path, pieces)


def _rows(rows: Sequence[int]) -> str:
    return f"{len(rows):,} row{'s' * (len(rows) != 1)}"

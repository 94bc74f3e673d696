"""Exports exchanges from the main screen to a file, in all export formats."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding

from dissector.core.text import counted
from dissector.export.command_line import format_rows
from dissector.export.formats import SUFFIXES, ExportRequest
from dissector.export.reopening import reopens_as
from tui.command_line import LineCommand, file_completions
from tui.feature import KEEP, ScreenFeature, work
from tui.screens.core_screen import CoreScreen
from tui.screens.dialog import Menu
from tui.screens.export_dialog import ExportDialog, ExportOrder, RowSelection, offered_contents
from tui.screens.write_dialog import Notify, WriteDialog


class ExportFeature(ScreenFeature[CoreScreen]):
    """Asks for rows, format and file name; then writes."""

    GROUP = KEEP

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("x", "export", "Export", tooltip="Write exchanges to a file: the marked ones, all shown, or this one",
                id="main.export"),
    ]  # fmt: skip

    @work(group="export", exclusive=True)
    async def action_export(self) -> None:
        """Ask what to write, and write it."""
        if not self.screen.is_read() or not len(self.screen.view):
            return
        order = await self.app.push_screen_wait(ExportDialog(self.screen.capture, self._selections()))
        if order is not None:
            await self._write(order)

    def commands(self) -> Iterator[LineCommand]:
        for name, words in (
            ("write", "write the shown rows; the file name's extension chooses the format"),
            ("w", "the same"),
        ):
            yield LineCommand(name, words, self._write_command, "FILE", file_completions, needs_argument=True)

    @work(group="export", exclusive=True)
    async def _write_command(self, name: str) -> None:
        """Write the rows that are shown, in the format of the file's suffix; ask what is in it where there is a
        choice."""
        if not self.screen.is_read() or not len(self.screen.view):
            return
        path = Path(name).expanduser()
        form = SUFFIXES.get(path.suffix)
        if form is None:
            self.notify(f"the extension chooses the format: {', '.join(SUFFIXES)}", timeout=5)
            return
        rows = self.screen.view.rows.tolist()
        offered = offered_contents(self.screen.capture, rows, form)
        at: int | None = 0
        if len(offered) > 1:
            at = await self.app.push_screen_wait(Menu("Contents", [each.choice for each in offered]))
        if at is not None:
            await self._write(ExportOrder(rows, form, offered[at], path))

    async def _write(self, order: ExportOrder) -> None:
        """Write the file; tell what it is, and as how many rows it will open."""
        dialog = self._writing(order)
        outcome = await self.app.push_screen_wait(dialog)
        if outcome and dialog.is_written and order.form.entry.is_capture:
            outcome += await asyncio.to_thread(reopens_as, order.path, len(order.rows))
        self.notify(outcome or "stopped: nothing written", timeout=8)

    def _selections(self) -> list[RowSelection]:
        """Return the rows to choose from. Marked ones come first: whoever marked rows wants these."""
        marked = sorted(self.screen.appearance.marks.marked)
        here, shown = self.screen.number, self.screen.view.rows.tolist()
        offered = [RowSelection(marked, f"Marked, {_rows(marked)}", "marked")] if marked else []
        words = "Shown" if self.screen.view.is_filtered else "All"
        offered.append(RowSelection(shown, f"{words}, {_rows(shown)}", words.lower()))
        return [*offered, RowSelection([here], f"Only row {here + 1:,}", str(here + 1))]

    def _writing(self, order: ExportOrder) -> WriteDialog:
        capture, marks = self.screen.capture, self.screen.appearance.marks
        rows, form, contents = order.rows, order.form, order.contents
        chosen = None if len(rows) == len(capture) else format_rows(rows)
        comments = dict.fromkeys(marks.marked, "marked") | marks.comments

        def pieces(report: Notify) -> Iterator[bytes]:
            from dissector.export.exporter import export_rows

            if form.entry.needs_findings:
                for _ in capture.findings.examine():
                    pass
            request = ExportRequest(
                form, contents.redact, chosen, comments=comments, has_secrets=contents.has_secrets,
                is_decrypted=contents.is_decrypted,
            )  # fmt: skip
            return export_rows(capture, rows, request, report)

        return WriteDialog(order.path, pieces)


def _rows(rows: Sequence[int]) -> str:
    return counted(len(rows), "row")

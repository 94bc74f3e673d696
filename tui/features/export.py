"""Exports exchanges from the main screen to a file, in all export formats."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

import numpy as np
from textual.binding import Binding

from dissector.capture import CaptureError
from dissector.capture_session import Capture
from dissector.core.text import counted
from dissector.export.command_line import format_rows
from dissector.export.formats import SUFFIXES, ExportFormat, ExportRequest
from dissector.index.exchange_table import RowKind
from tui.command_line import LineCommand, file_completions
from tui.feature import KEEP, ScreenFeature, work
from tui.screens.core_screen import CoreScreen
from tui.screens.dialog import Choice, Menu, Prompt
from tui.screens.write_dialog import Notify, WriteDialog

FORMATS: Final = tuple(ExportFormat)
LARGEST_REOPENED: Final = 1 << 26
"""Bytes of a file whose rows are counted after it is written."""


class _Contents(NamedTuple):
    """What of the rows is written, and what the file's name says of it."""

    choice: Choice
    called: str = ""
    redact: bool = False
    has_secrets: bool = True
    is_decrypted: bool = False


SHOWN: Final = _Contents(Choice("Unchanged", "as on the screen"))
UNCHANGED: Final = _Contents(Choice("Unchanged", "all bytes, secrets too"))
REDACTED: Final = _Contents(Choice("Redacted", "contents, names and secrets replaced"), "-redacted", redact=True)
ENCRYPTED: Final = (
    _Contents(Choice("With TLS secrets", "anyone who has the file can decrypt it"), "-with-secrets"),
    _Contents(Choice("Without TLS secrets", "still encrypted"), "-encrypted", has_secrets=False),
    _Contents(Choice("Decrypted", "packets rebuilt as plain TCP, as on the screen"), "-decrypted", is_decrypted=True),
)
"""Of connections that were decrypted; the command's default first."""


class _RowSelection(NamedTuple):
    """Rows, from 0 and ascending, and their name in the file's name."""

    rows: Sequence[int]
    called: str


class ExportFeature(ScreenFeature[CoreScreen]):
    """Asks for rows, format and file name; then writes."""

    GROUP = KEEP

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("x", "export", "Export", tooltip="Write exchanges to a file: marked ones, those shown, or this one",
                id="main.export"),
    ]  # fmt: skip

    @work(group="export", exclusive=True)
    async def action_export(self) -> None:
        """Ask one thing after the other; closing a dialog cancels the export."""
        if not self.screen.is_read() or not len(self.screen.view):
            return
        wanted = await self._asked_rows()
        if wanted is None:
            return
        choices = [Choice(each.entry.label, each.entry.description) for each in FORMATS]
        at = await self.app.push_screen_wait(Menu("Write as", choices))
        if at is None:
            return
        form = FORMATS[at]
        contents = await self._asked_contents(wanted, form)
        if contents is None:
            return
        name = self._offered_name(wanted.called, form, contents)
        given = await self.app.push_screen_wait(Prompt(f"Write {_rows(wanted.rows)} to", name))
        if given is None or not given.strip():
            return
        await self._write(Path(given.strip()), wanted, form, contents)

    def commands(self) -> Iterator[LineCommand]:
        for name, words in (
            ("write", "write the rows that are shown; the suffix chooses the format"),
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
            self.notify(f"the suffix chooses the format: {', '.join(SUFFIXES)}", timeout=5)
            return
        rows = _RowSelection(self.screen.view.rows.tolist(), "")
        contents = await self._asked_contents(rows, form)
        if contents is not None:
            await self._write(path, rows, form, contents)

    async def _write(self, path: Path, wanted: _RowSelection, form: ExportFormat, contents: _Contents) -> None:
        """Write the file; tell what it is, and as how many rows it will open."""
        dialog = self._writing(path, wanted, form, contents)
        outcome = await self.app.push_screen_wait(dialog)
        if outcome and dialog.is_written and form.entry.is_capture:
            outcome += await asyncio.to_thread(_reopened, path, len(wanted.rows))
        self.notify(outcome or "stopped: nothing written", timeout=8)

    async def _asked_rows(self) -> _RowSelection | None:
        """Ask for the rows. Marked ones come first: whoever marked rows wants these."""
        marked = sorted(self.screen.appearance.marks.marked)
        here = self.screen.number
        offered = [(f"Marked, {_rows(marked)}", _RowSelection(marked, "marked"))] if marked else []
        shown = self.screen.view.rows.tolist()
        words = "Shown" if self.screen.view.is_filtered else "All"
        offered.append((f"{words}, {_rows(shown)}", _RowSelection(shown, words.lower())))
        offered.append((f"Only row {here + 1:,}", _RowSelection([here], str(here + 1))))
        at = await self.app.push_screen_wait(Menu("Export", [Choice(words) for words, _ in offered]))
        return None if at is None else offered[at][1]

    async def _asked_contents(self, wanted: _RowSelection, form: ExportFormat) -> _Contents | None:
        """Ask what of the rows is written, where there is a choice."""
        if not form.entry.can_redact:
            return SHOWN
        whole: Sequence[_Contents] = (UNCHANGED,) if form.entry.needs_packets else (SHOWN,)
        if form.entry.needs_packets and self.screen.capture.frames.decrypted_connections(wanted.rows):
            whole = ENCRYPTED
        offered = (*whole, REDACTED)
        at = await self.app.push_screen_wait(Menu("Contents", [each.choice for each in offered]))
        return None if at is None else offered[at]

    def _offered_name(self, called: str, form: ExportFormat, contents: _Contents) -> str:
        """Return a name that says what the file holds; of the capture's name characters that any file system takes."""
        path = Path(self.screen.capture.names[0])
        stem = "live" if path.parent == Path("/dev/fd") else path.stem  # a live capture has a number for a name
        of = re.sub(r"[^\w.-]", "-", stem)[:60].lstrip("-.") or "capture"
        return f"{of}-{called}{contents.called}{form.entry.suffixes[0]}"

    def _writing(self, path: Path, wanted: _RowSelection, form: ExportFormat, contents: _Contents) -> WriteDialog:
        capture, marks = self.screen.capture, self.screen.appearance.marks
        chosen = None if len(wanted.rows) == len(capture) else format_rows(wanted.rows)
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
            return export_rows(capture, wanted.rows, request, report)

        return WriteDialog(path, pieces)


def _reopened(path: Path, written: int) -> str:
    """Say as how many rows a file opens, of which so many were written: there are gaps where other packets were, and
    other rows that are in the same packets. Empty if it is too large to look."""
    try:
        if path.stat().st_size > LARGEST_REOPENED:
            return ""
        with Capture([str(path)]) as capture:
            for _ in capture.read():
                pass
            kinds = capture.index.numbers(np.arange(len(capture))).kind
    except (CaptureError, OSError) as error:
        return f"; it can't be opened again: {error}"
    gaps = int((kinds == RowKind.GAP).sum())
    others = len(kinds) - gaps - written
    words = [counted(gaps, "gap between them", "gaps between them")] if gaps else []
    words += [f"{others:,} more in the same packets"] if others > 0 else []
    return f"; it opens as {_rows(range(len(kinds)))}{': ' if words else ''}{', '.join(words)}"


def _rows(rows: Sequence[int]) -> str:
    return f"{len(rows):,} row{'s' * (len(rows) != 1)}"

"""The dialog that asks what to export: rows, format, contents and file in a line each. Enter writes what is shown.

Invariant: the file's name says what the file holds, until the user types another.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Static

from dissector.capture_session import Capture
from dissector.export.formats import ExportFormat
from tui.screens.dialog import Choice, Dialog
from tui.widgets.choice_line import LABEL_WIDTH, ChoiceLine

FORMATS: Final = tuple(ExportFormat)
HINT: Final = "enter write  ·  ↑↓ line  ·  ←→ choice  ·  esc cancel"


class ExportContents(NamedTuple):
    """What of the rows is written, and what the file's name says of it."""

    choice: Choice
    called: str = ""
    redact: bool = False
    has_secrets: bool = True
    is_decrypted: bool = False


SHOWN: Final = ExportContents(Choice("Unchanged", "as on the screen"))
UNCHANGED: Final = ExportContents(Choice("Unchanged", "all bytes, including secrets"))
REDACTED: Final = ExportContents(Choice("Redacted", "contents, names and secrets replaced"), "-redacted", redact=True)
ENCRYPTED: Final = (
    ExportContents(Choice("With TLS secrets", "anyone who has the file can decrypt it"), "-with-secrets"),
    ExportContents(Choice("Without TLS secrets", "still encrypted"), "-encrypted", has_secrets=False),
    ExportContents(
        Choice("Decrypted", "packets rebuilt as plain TCP, as on the screen"), "-decrypted", is_decrypted=True
    ),
)
"""Of connections that were decrypted; the command's default first."""


class RowSelection(NamedTuple):
    """Rows, from 0 and ascending, what they are, and that in the file's name."""

    rows: Sequence[int]
    label: str
    called: str


class ExportOrder(NamedTuple):
    """What to write, and where."""

    rows: Sequence[int]
    form: ExportFormat
    contents: ExportContents
    path: Path


def offered_contents(capture: Capture, rows: Sequence[int], form: ExportFormat) -> Sequence[ExportContents]:
    """Return what of the rows can be written, the default first."""
    if not form.entry.can_redact:
        return (SHOWN,)
    whole: Sequence[ExportContents] = (UNCHANGED,) if form.entry.needs_packets else (SHOWN,)
    if form.entry.needs_packets and capture.frames.decrypted_connections(rows):
        whole = ENCRYPTED
    return (*whole, REDACTED)


def offered_name(capture: Capture, called: str, form: ExportFormat, contents: ExportContents) -> str:
    """Return a name that says what the file holds; of the capture's name characters that any file system takes."""
    path = Path(capture.names[0])
    stem = "live" if path.parent == Path("/dev/fd") else path.stem  # a live capture has a number for a name
    of = re.sub(r"[^\w.-]", "-", stem)[:60].lstrip("-.") or "capture"
    return f"{of}-{called}{contents.called}{form.entry.suffixes[0]}"


class ExportDialog(Dialog[ExportOrder | None]):
    """Returns what to write; None if cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Cancel", tooltip="Cancel", id="export.close"),
        Binding("enter", "write", "Write", tooltip="Write the file", id="export.write"),
        Binding("down,j", "app.focus_next", "Next line", show=False, id="export.next"),
        Binding("up,k", "app.focus_previous", "Previous line", show=False, id="export.previous"),
    ]

    def __init__(self, capture: Capture, selections: Sequence[RowSelection]) -> None:
        """The first selection is the default."""
        super().__init__()
        self._capture = capture
        self._selections = selections
        self._contents: Sequence[ExportContents] = ()
        self._wanted = UNCHANGED
        """The contents that the user chose last."""
        self._offered = ""

    def compose(self) -> ComposeResult:
        with Vertical(id="export") as box:
            yield ChoiceLine("Rows", [(each.label, "") for each in self._selections], id="export-rows")
            formats = [(each.entry.label, each.entry.description) for each in FORMATS]
            yield ChoiceLine("Format", formats, id="export-format")
            yield ChoiceLine("Contents", [], id="export-contents")
            with Horizontal(id="export-file"):
                yield Static(Text("File".ljust(LABEL_WIDTH + 2), "dim"), id="export-label")
                yield Input(id="export-path", select_on_focus=False, compact=True)
            yield Static(Text(HINT, "dim"), id="export-hint")
        box.border_title = "Export"

    def on_mount(self) -> None:
        self._draw_contents()

    @property
    def _selection(self) -> RowSelection:
        return self._selections[self.query_one("#export-rows", ChoiceLine).at]

    @property
    def _form(self) -> ExportFormat:
        return FORMATS[self.query_one("#export-format", ChoiceLine).at]

    @property
    def _chosen_contents(self) -> ExportContents:
        return self._contents[self.query_one("#export-contents", ChoiceLine).at]

    def on_choice_line_changed(self, event: ChoiceLine.Changed) -> None:
        if event.line.id == "export-contents":
            self._wanted = self._chosen_contents
            self._draw_name()
        else:
            self._draw_contents()

    def _draw_contents(self) -> None:
        """Offer the contents that these rows can have in this format; what the user chose is chosen where it is one."""
        self._contents = offered_contents(self._capture, self._selection.rows, self._form)
        line = self.query_one("#export-contents", ChoiceLine)
        at = self._contents.index(self._wanted) if self._wanted in self._contents else 0
        line.offer([(each.choice.name, each.choice.words) for each in self._contents], at)
        self._draw_name()

    def _draw_name(self) -> None:
        path = self.query_one(Input)
        if path.value == self._offered:
            name = offered_name(self._capture, self._selection.called, self._form, self._chosen_contents)
            self._offered = path.value = name

    def on_input_submitted(self) -> None:
        self.action_write()

    def action_write(self) -> None:
        name = self.query_one(Input).value.strip()
        if name:
            self.dismiss(ExportOrder(self._selection.rows, self._form, self._chosen_contents, Path(name).expanduser()))

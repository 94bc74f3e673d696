"""Copies the selected field or row, in one of many formats, to the clipboard of the terminal (OSC 52: over ssh
too).

Every format cleans what came from the wire: pasted into a shell it is text, and line feeds are ours.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from textual.binding import Binding

from dissector.core.json_text import dumps
from dissector.core.text import clean, cut, seconds
from dissector.exchange.field_paths import ABSENT, plain_path, value_at
from dissector.export.command_line import shell_word, show_command
from dissector.protocol.tree import Node
from tui.exchange_model import ExchangeModel
from tui.feature import KEEP, ScreenFeature
from tui.labels import field_label, row_cells, size_words
from tui.screens.core_screen import CoreScreen
from tui.screens.dialog import Choice, Menu
from tui.value_parts import JSON_VALUE

SAMPLE = 40
"""Characters of the copied text that the notification shows."""
LONGEST: Final = 65_536
"""Characters: terminals hardly take more by OSC 52."""


class ClipboardFormat(NamedTuple):
    """A format: its key, its name, and the function that makes the text, cleaned; None if there is nothing to copy."""

    key: str
    words: str
    make: Callable[[ExchangeModel], str | None]


WELL_KNOWN: Final = "9092"
"""The port that Wireshark takes for Kafka's."""


class ClipboardText(NamedTuple):
    """The text for the clipboard; `size` is its length in characters before it was cut."""

    text: str
    size: int


def clipboard_text(form: ClipboardFormat, model: ExchangeModel) -> ClipboardText | None:
    """Return the text of a format for the current selection, cut to `LONGEST`."""
    text = form.make(model)
    if text is None:
        return None
    return ClipboardText(text[:LONGEST], len(text))


def _path(model: ExchangeModel) -> str | None:
    return clean(plain_path(model.path)) or None


def _value(model: ExchangeModel) -> str | None:
    """Return a leaf's value without quotes; a structure as JSON."""
    node = model.node
    if node is None:
        return None
    if node.value is None:
        return _json(model) if node.children else "null"
    if isinstance(node.value, bytes):
        return node.value.hex()
    return str(node.value).lower() if isinstance(node.value, bool) else clean(str(node.value))


def _hex(model: ExchangeModel) -> str | None:
    return model.chosen_bytes.hex(" ") or None


def _python(model: ExchangeModel) -> str | None:
    return repr(model.chosen_bytes) if model.chosen_bytes else None


def _json(model: ExchangeModel) -> str | None:
    """Return the field as `show --format json` prints it, or the whole message."""
    if model.traced is None:
        return None
    node = model.node
    if node is not None and node.type == JSON_VALUE and model.chosen_bytes:
        return clean(model.chosen_bytes.decode("utf-8", "replace"))
    value = value_at(model.traced.message, node.path if node is not None else "")
    if value is ABSENT:
        value = node.value if node is not None else None
    return dumps(value, indented=True).decode()


def _command(model: ExchangeModel) -> str | None:
    """Return a shell command; it works where the same files are."""
    if model.number is None:
        return None
    capture = model.capture
    return show_command(capture.names, None, f"number == {model.number + 1}", map(str, capture.decode_as))


def _wireshark(model: ExchangeModel) -> str | None:
    """Return a shell command that opens the capture in Wireshark at the packet of the shown message. Several files are
    one capture here and have no such number there."""
    names, exchange = model.capture.names, model.exchange
    if exchange is None or len(names) != 1 or not Path(names[0]).is_file():
        return None
    packet = exchange.row.response_packet if model.side == "response" else exchange.row.packet
    if packet is None:
        return None
    port = exchange.row.server.rpartition(":")[2]
    kafka = "" if port == WELL_KNOWN or not port.isdecimal() else f"-d tcp.port=={port},kafka "
    return f"wireshark {kafka}-g {packet} -r {shell_word(names[0])}"


def _row(model: ExchangeModel) -> str | None:
    if model.exchange is None:
        return None
    row = model.exchange.row
    return "  ".join(filter(None, row_cells(row, seconds(row.time_ns - model.capture.start_ns)).values()))


def _tree(model: ExchangeModel) -> str | None:
    """Return the field and all fields below it, indented; cut where a large one exceeds the clipboard."""
    if model.traced is None:
        return None
    top = model.node if model.node is not None else model.traced.message.tree
    lines: list[str] = []
    room = LONGEST
    for depth, node in _below(top):
        lines.append("  " * depth + (f"{field_label(node).plain}  {size_words(node)}" if node.name else ""))
        room -= len(lines[-1]) + 1
        if room < 0:
            break
    return "\n".join(lines)


def _below(top: Node) -> Iterable[tuple[int, Node]]:
    """Yield a node and all nodes below it, each with its depth."""
    stack = [(0, top)] if top.path else [(0, child) for child in reversed(top.children)]
    while stack:
        depth, node = stack.pop()
        yield depth, node
        stack += [(depth + 1, child) for child in reversed(node.children)]


CLIPBOARD_FORMATS: Final = (
    ClipboardFormat("f", "path of the field", _path),
    ClipboardFormat("v", "value", _value),
    ClipboardFormat("h", "bytes as hex", _hex),
    ClipboardFormat("p", "bytes as a Python literal", _python),
    ClipboardFormat("j", "JSON of the field, or of the message", _json),
    ClipboardFormat("t", "text of the field and all below it", _tree),
    ClipboardFormat("r", "row", _row),
    ClipboardFormat("c", "command that shows the same", _command),
    ClipboardFormat("w", "command that opens the packet in Wireshark", _wireshark),
)


class ClipboardFeature(ScreenFeature[CoreScreen]):
    """y, then a letter for the format."""

    GROUP = KEEP

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("y", "copy", "Copy", show=False, tooltip="Copy the field: path, value, hex, JSON, …", id="main.copy"),
    ]

    def action_copy(self) -> None:
        """Ask for the format."""

        def copy(chosen: int | None) -> None:
            if chosen is not None:
                self._copy(CLIPBOARD_FORMATS[chosen])

        self.app.push_screen(Menu("Copy", [Choice(form.words, key=form.key) for form in CLIPBOARD_FORMATS]), copy)

    def _copy(self, form: ClipboardFormat) -> None:
        copied = clipboard_text(form, self.screen.model)
        if copied is None:
            self.notify(f"no {form.words} here: select a field", timeout=3)
            return
        self.app.copy_to_clipboard(copied.text)
        shown = cut(clean(copied.text), SAMPLE)
        left_out = copied.size - len(copied.text)
        size = f", the first {len(copied.text):,} of {copied.size:,} characters" if left_out else ""
        self.notify(f"copied the {form.words}{size}: {shown}", timeout=5 if left_out else 3)

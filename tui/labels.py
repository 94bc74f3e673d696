"""Fields, rows and bytes as text for the screen. Every word from the wire passes `clean` here."""

import re
import struct
from typing import Final

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from dissector.capture_session import Progress
from dissector.core.finding import Severity
from dissector.core.text import byte_size, clean, counted, duration, shortened, size
from dissector.exchange.field_paths import found, leads_into_bytes, plain_path
from dissector.exchange.finding_words import heading_sizes
from dissector.exchange.listing import latency_words
from dissector.exchange.model import Exchange, ExchangeMessage, ExchangeRow
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.protocol.schema.model import Field
from dissector.protocol.tree import UNPARSED, Node
from dissector.protocol.wire import WireError, varint
from tui.exchange_model import ExchangeModel
from tui.list_columns import with_elided_names
from tui.record_source import NAME, RecordSource
from tui.theme import Inks

LONGEST_VALUE = 64
MOST_VALUES = 16
"""Values of a repeated field in a cell of the list."""
_NUMBERS = (("i8", ">b", 1), ("i16", ">h", 2), ("i32", ">i", 4), ("i64", ">q", 8))
_LONGEST_VARINT = 5
_ELEMENTS: Final = re.compile(r"\[\d+\]")
MARKS = {"error": "‼", "warning": "!", "note": "·"}


def with_state(title: Text, state: str, width: int, style: str = "dim") -> Text:
    """Return a title of `width` cells with a state at its right, added to the title."""
    return title.append(" " * max(1, width - title.cell_len - cell_len(state))).append(state, style)


def progress_words(progress: Progress, *, done: bool) -> str:
    """Return how far reading is: a percentage, or what was read if the total is unknown."""
    if done:
        return "● 100%"
    if not progress.total:
        return f"○ {byte_size(progress.done)}" if progress.done else "○ waiting"
    share = min(100, 100 * progress.done // progress.total)
    return f"▕{('█' * (share // 10)).ljust(10, '░')}▏ ○ {share}%"


def value_text(node: Node, longest: int = LONGEST_VALUE) -> str:
    """Return a field's value in one line."""
    value = node.value
    if value is None:
        return "" if node.children else "null"
    if isinstance(value, bytes):
        words = value[: longest // 2].hex(" ")
        return words[:longest] + "…" if len(words) > longest or len(value) > longest // 2 else words or "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        words = clean(value[: longest + 1])
        return f'"{words[:longest]}…"' if len(words) > longest else f'"{words}"'
    return clean(str(value))


def value_words(node: Node, longest: int = LONGEST_VALUE) -> tuple[str, str]:
    """Return what is read of a field first, and what explains it: a value and its meaning, or a text and its bytes."""
    value, note = value_text(node, longest), clean(node.note)
    return (note, value) if node.is_text else (value, note)


def value_color(node: Node) -> str:
    """Return the color of a value, by its type: one of the theme, or dim for what says that there is nothing."""
    if node.type == UNPARSED:
        return "error"
    if node.value is None or node.value is False or node.name.startswith("("):
        return "dim"
    return "success" if isinstance(node.value, str) else "secondary" if isinstance(node.value, bytes) else "primary"


def field_label(node: Node, inks: Inks | None = None, log_offset: int | None = None) -> Text:
    """Return a field's line in the tree, without its size. `inks` are the styles of colors; `log_offset` is the offset
    that the broker gave to a record."""
    styles = {"dim": Style(dim=True), **(inks or {})}

    def ink(color: str, more: str = "") -> Style:
        return styles.get(color, Style.null()) + Style.parse(more)

    own = node.name.startswith(("(", "["))
    label = Text(clean(node.name), ink("dim") if own else ink("", "bold") if node.children else "")
    words, meaning = value_words(node)
    if words and not (node.children and node.type == UNPARSED):
        label.append(" ").append(words, ink(value_color(node)))
    elif node.children and node.children[0].name == "(count)" and node.children[0].value is not None:
        label.append(f" [{node.children[0].value}]", ink("dim"))
    if meaning:
        note = f" ({meaning})" if words else f" {meaning}"
        label.append(note, ink("warning", "italic") if node.advice else ink("", "italic"))
    if log_offset is not None:
        label.append(f", {log_offset} in the log", ink("", "italic"))
    for finding in node.findings:
        color = {Severity.ERROR: "error", Severity.WARNING: "warning"}.get(finding.severity, "dim")
        label.append(f" {MARKS[finding.severity.value]} {clean(finding.message)}", ink(color))
    return label


def size_words(node: Node) -> str:
    """Return how many bytes a field has on the wire."""
    return f"{node.size:,} B"


def is_size_prefix(node: Node) -> bool:
    """Return whether a node is a frame's prefix, which does not count itself; the row field `request.size` does."""
    return node.path == "size" and isinstance(node.value, int)


def inspector_text(node: Node | None, message: ExchangeMessage | None, side: str) -> tuple[Text, Text]:
    """Return the two lines about a field: its path as filters have it, what it is and means; its schema and its place
    in the bytes. Empty ones if none is selected."""
    if node is None or message is None:
        return Text(), Text()
    if node.source == len(message.sources):
        return _record_text(node)
    name = f"{side}, size prefix" if is_size_prefix(node) else path_words(side, node)
    text = Text().append(clean(name), "bold")
    meaning = [words for words in value_words(node) if words and not node.children]
    sign = " · " if node.is_encoding else " = "
    words = [clean(sign.join(meaning)), node.type, node.advice]
    more = [f"element {''.join(_ELEMENTS.findall(node.path))}"] if _ELEMENTS.search(node.path) else []
    more += _schema_words(node.schema, node) if node.schema is not None else []
    more.append(place_words(node.start, node.end))
    if node.source:
        more.append(clean(f"of {message.sources[node.source].name}"))
    return text.append("".join(f" · {word}" for word in words if word), "dim"), Text(" · ".join(more), "dim")


def path_words(side: str, node: Node) -> str:
    """Return the path of a field as a filter has it; a part of the wire behind that of its field."""
    return plain_path(f"{side}.{node.path}" if node.path else side).replace(".(", " (")


def place_words(start: int, end: int) -> str:
    """Return where bytes are, first and last one, and how many they are."""
    if end == start:
        return f"no bytes, at {start:,}"
    return f"byte {start:,}" if end == start + 1 else f"bytes {start:,}–{end - 1:,} ({end - start:,})"


def row_words(exchange: Exchange) -> Text:
    """Return a line about an exchange: who asks whom for what, how large, how long, what came of it."""
    row = exchange.row
    text = Text().append(clean(row.api), "bold").append("" if row.version is None else f" v{row.version}")
    who = f"{clean(shortened(row.client_id))} " if row.client_id else ""
    there = [("request", row.request_size), ("response", row.response_size)]
    words = [
        f"C{row.connection}: {who}{row.client} → {row.server}",
        *(f"{side} {count:,} B" for side, count in there if count is not None),
        "" if row.latency_ns is None else duration(row.latency_ns),
        latency_words(row),
        clean(row.info),
    ]
    return text.append("".join(f" · {each}" for each in words if each), "dim")


def _record_text(node: Node) -> tuple[Text, Text]:
    """Return the lines about a part of a TLS record."""
    words = value_text(node) if not node.children else ""
    text = Text().append(node.path.replace("(", "").replace(")", "").replace(".", " · "), "bold")
    text.append("".join(f" · {word}" for word in (" = ".join(filter(None, (words, node.note))),) if word), "dim")
    return text, Text(f"{place_words(node.start, node.end)} of the TLS records", "dim")


def _schema_words(schema: Field, node: Node) -> list[str]:
    words = [f"versions {schema.versions}"]
    if schema.tag is not None and schema.tagged_versions:
        words.append(f"tag {schema.tag}")
    if schema.nullable_versions:
        words.append(f"nullable {schema.nullable_versions}")
    if schema.default is not None and not schema.is_array:
        words.append(f"default {clean(str(schema.default))}" if not _is_default(schema, node) else "the default")
    if schema.entity_type:
        words.append(schema.entity_type)
    return words


def _is_default(schema: Field, node: Node) -> bool:
    if node.value is None:
        return schema.default == "null"
    return str(node.value).lower() == str(schema.default).lower()


def byte_readings(data: bytes, offset: int) -> str:
    """Return the bytes from `offset` on, read as numbers."""
    words = []
    for name, code, width in _NUMBERS:
        if offset + width <= len(data):
            words.append(f"{name} {struct.unpack_from(code, data, offset)[0]}")
    return f"{offset:#06x} {data[offset]:#04x}: " + " · ".join([*words, _varint_reading(data, offset)])


def range_readings(data: bytes, selected: range) -> str:
    """Describe selected bytes: their count, as a number if they have the size of one, as text."""
    chosen = data[selected.start : selected.stop]
    words = [f"{counted(len(chosen), 'byte')} selected"]
    for name, code, width in _NUMBERS:
        if width == len(chosen):
            words.append(f"{name} {struct.unpack(code, chosen)[0]} · u{name[1:]} {int.from_bytes(chosen, 'big')}")
    if len(chosen) <= _LONGEST_VARINT:
        words.append(_varint_reading(chosen, 0))
    shown = clean(chosen[:LONGEST_VALUE].decode("utf-8", "replace"))
    return " · ".join([*words, f'"{shown}"' if len(chosen) <= LONGEST_VALUE else f'"{shown}…"'])


def _varint_reading(data: bytes, offset: int) -> str:
    try:
        return f"varint {varint(data, offset)[0]}"
    except WireError:
        return "varint –"


def row_cells(row: ExchangeRow, time: str) -> dict[str, str]:
    """Return a row's cells by column, cleaned; `time` is the text of its time."""
    cells = {
        "number": str(row.number),
        "time": time,
        "connection": f"C{row.connection}",
        "api": clean(row.api),
        "api_version": "" if row.version is None else str(row.version),
        "correlation_id": "" if row.correlation_id is None else str(row.correlation_id),
        "request.size": "–" if row.request_size is None else size(row.request_size),
        "response.size": "–" if row.response_size is None else size(row.response_size),
        "latency": "" if row.latency_ns is None else duration(row.latency_ns),
        "client_id": "" if row.client_id is None else clean(shortened(row.client_id)),
        "info": clean(row.info),
    }
    return {ROW_FIELDS[name].heading: cell for name, cell in cells.items()}


def fitting_info(exchange: Exchange, width: int) -> str:
    """Return the info column of a row, cleaned; long names lose their middles where it is wider than that."""
    info = exchange.row.info
    said = heading_sizes(info, exchange.row_findings)[1]
    return with_elided_names(clean(info), width, len(clean(info[:said])))


def path_cell(exchange: Exchange, name: str) -> str:
    """Return the values at the path of a field as the text of a cell, cleaned and cut."""
    return ",".join(_path_word(value) for value in path_values(exchange, name)[:MOST_VALUES])


def path_values(exchange: Exchange, name: str) -> list[object]:
    """Return the values at the path of a field."""
    if name in ROW_FIELDS:
        return [ROW_FIELDS[name].from_exchange(exchange)]
    side, *path = name.split(".")
    message = exchange.request if side == "request" else exchange.response
    if message is None or (exchange.fields.kind != "exchange" and not exchange.is_stored):
        return []
    part, *rest = path if path[:1] in (["header"], ["body"]) else ["body", *path]
    body = message.decoded_body if leads_into_bytes(rest) else message.body
    return found(message.header if part == "header" else body, rest)


def _path_word(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value[:LONGEST_VALUE].hex()
    if isinstance(value, dict):
        return "{…}"
    return str(value).lower() if isinstance(value, bool) else clean(str(value)[:LONGEST_VALUE])


_KINDS: Final = {"frame": "frame", NAME: NAME}
"""What sources are called, by name; the others are decompressed."""


def bytes_title(model: ExchangeModel) -> str:
    """Return what the bytes that are shown are, and which others the key b shows. Cleaned, no markup."""
    source, traced, node = model.source, model.traced, model.node
    if source is None:
        return ""
    if model.records is not None:
        return _records_title(model, model.records)
    span = f" {hex_place(node.start, node.end)}" if node is not None and node.size else ""
    name = "bytes" if source.number == 0 else f"bytes · {clean(source.name)}"
    others = [] if traced is None else [each.name for each in traced.sources if each is not source]
    kinds = sorted({_KINDS.get(each, "decompressed") for each in others})
    count = f"{len(others):,} " if len(others) > 1 else ""
    return f"{name}{span}" + (f" · b: {count}{kinds[0] if len(kinds) == 1 else 'others'}" if kinds else "")


def hex_place(start: int, end: int) -> str:
    """Return the offsets of the first and the last byte."""
    return f"{start:#06x}" if end <= start + 1 else f"{start:#06x}–{end - 1:#06x}"


def _records_title(model: ExchangeModel, records: RecordSource) -> str:
    """Say which TLS records are marked, and their packets: those of the selected field, or all."""
    traced, node, size = model.traced, model.node, len(records.source.data)
    if node is None or traced is None:
        return records.words(0, size)
    if node.source == records.source.number:
        return records.words(node.start, node.end)
    return records.words_of_message(*traced.in_frame(node)) or NAME


def byte_words(model: ExchangeModel, data: bytes, offset: int) -> str:
    """Return what a byte of the shown source is: numbers that begin there, or the field that it is encrypted."""
    if model.records is None or model.traced is None:
        return byte_readings(data, offset)
    byte = model.records.message_byte(offset)
    node = model.traced.node_at(0, byte) if byte is not None else None
    of = f" is a byte of {model.side}.{clean(node.path)}, encrypted" if node is not None else ""
    return f"{offset:#06x} {data[offset]:#04x}{of}"

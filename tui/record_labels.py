"""Records as text of the record view: cells of a line, and all of one record for reading."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size

from dissector.core.text import clean, counted
from dissector.records.record import ExchangeRecord
from dissector.records.record_text import (
    headers_text,
    json_text,
    offset_text,
    pretty_text,
    shown,
    time_words,
    value_text,
)
from dissector.records.values.opened import BYTES, NULL, OpenedValue
from dissector.records.values.trace_context import header_value, header_words
from tui.list_columns import SHORTEST_NAME, elided

MOST_TEXT: Final = 1 << 18
"""Characters of a value that are shown."""
MOST_LINES: Final = 10_000
ROLES: Final = ("head", "key", "number", "dim", "bad")
"""The roles of text, besides plain."""
_ROW: Final = 16
"""Bytes of a line in hex."""
_HEX_WIDTH: Final = 9 + 3 * _ROW + 2 + _ROW
_JSON: Final = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*|true|false|null)|([\[\]{},]+)')
_LEAST_VALUE: Final = 20
_LONGEST_NAME: Final = 40
_NARROW: Final = 76
"""Cells below which the list has no times."""
Pieces = list[tuple[str, str]]
"""Texts, each with its role or none."""


class RecordColumnWidth(NamedTuple):
    """A column of the list."""

    name: str
    width: int
    right: bool = False


def columns_for(width: int) -> list[RecordColumnWidth]:
    """Return the columns of a list of so many cells: the value gets what the others leave."""
    wide, roomy = width >= 180, width >= 110
    columns = [
        RecordColumnWidth("Offset", 9, right=True), RecordColumnWidth("Time", 23 if wide else 12),
        RecordColumnWidth("Topic", 30 if wide else 20 if roomy else 15),
        RecordColumnWidth("Key", 24 if wide else 18 if roomy else 11),
    ]  # fmt: skip
    if width < _NARROW:
        del columns[1]  # the value is what one looks for; the time is below
    headers = 40 if wide else 24 if roomy else 0
    used = sum(column.width + 1 for column in columns) + (headers + 1 if headers else 0)
    columns.append(RecordColumnWidth("Value", max(_LEAST_VALUE, width - used - 1)))
    return [*columns, RecordColumnWidth("Headers", headers)] if headers else columns


def fitted(text: str, column: RecordColumnWidth) -> str:
    """Return a text in exactly the cells of a column."""
    if cell_len(text) > column.width:
        text = set_cell_size(text, column.width - 1) + "…"
    return set_cell_size(text.rjust(column.width) if column.right else text, column.width)


def topic_words(record: ExchangeRecord) -> str:
    """``orders-0``."""
    return f"{clean(record.topic) or '?'}-{'?' if record.partition is None else record.partition}"


def record_cells(record: ExchangeRecord, columns: Sequence[RecordColumnWidth], *, repeats: bool) -> Pieces:
    """Return the cells of a line; the topic is faint where it repeats that of the line above."""
    time = time_words(record.timestamp)
    texts = {
        "Offset": (offset_text(record), "dim" if record.is_produced else ""),
        "Time": (time[11:-1] if len(time) == 24 else time, "dim"),
        "Topic": (topic_words(record), "dim" if repeats else ""),
        "Key": _cell(record.opened_key),
        "Value": _cell(record.opened_value),
        "Headers": (headers_text(record, 200), "dim"),
    }
    pieces: Pieces = [(" ", "")]
    for column in columns:
        text, role = texts[column.name]
        if column.name == "Time" and column.width > 12:
            text = time[:-1].replace("T", " ")
        pieces.append((fitted(text, column) + " ", role))
    return pieces


def _cell(opened: OpenedValue) -> tuple[str, str]:
    if opened.problem is not None:
        return f"! {value_text(opened, 300)}", "different"
    if opened.inner is not opened.value:  # Connect's schema is the same in every record
        return shown(json_text(opened.inner), 300), ""
    return value_text(opened, 300), "dim" if opened.form in (NULL, BYTES) else ""


def record_lines(record: ExchangeRecord, carried: str, width: int, *, as_hex: bool) -> list[Pieces]:
    """Return all of a record, wrapped; `carried` says what carries it."""
    words, offset = f"{time_words(record.timestamp)}  {carried}", f" @ {offset_text(record)}"
    place = (elided(topic_words(record), max(SHORTEST_NAME, width - len(offset))) + offset, "head")
    fits = cell_len(place[0]) + 2 + cell_len(words) <= width
    lines: list[Pieces] = [[place, (f"  {words}", "dim")]] if fits else [[place], [(words, "dim")]]
    if record.is_control:
        lines.append([("a control record: it ends a transaction, or belongs to KRaft", "dim")])
    lines += _part("key", record.key, record.opened_key, width, as_hex=as_hex)
    if record.headers:
        lines += [[], [("Headers", "head")]]
    for name, content in record.headers:
        lines += _header(name, content, width)
    lines += _part("value", record.value, record.opened_value, width, as_hex=as_hex)
    return lines[:MOST_LINES]


def _part(name: str, data: bytes | None, opened: OpenedValue, width: int, *, as_hex: bool) -> Iterator[Pieces]:
    facts = [opened.form] if opened.form != NULL else []
    facts += [words for words in (opened.schema, opened.envelope) if words]
    facts.append("null" if data is None else counted(len(data), "byte"))
    yield []
    yield [(name.capitalize(), "head"), (f"  {' · '.join(map(clean, facts))}", "dim")]
    if opened.problem is not None:
        yield from ([(line, "bad")] for line in _wrapped(f"! {clean(opened.problem.message)}", width))
    if not data:
        return
    if as_hex or opened.form == BYTES:
        yield from _hex(data, width)
        return
    text = pretty_text(opened)
    for line in text[:MOST_TEXT].split("\n"):
        if opened.is_structure:
            yield from _json_line(line, width)
        else:
            yield from ([(part, "")] for part in _wrapped(clean(line.rstrip("\r")), width))
    if len(text) > MOST_TEXT:
        yield [(f"… {len(text) - MOST_TEXT:,} more characters: x writes all of them", "dim")]


def _header(name: str, content: bytes | None, width: int) -> Iterator[Pieces]:
    value = header_value(name, content)
    text = "null" if value is None else value.hex(" ") if isinstance(value, bytes) else str(value)
    first = f"{shown(name, _LONGEST_NAME)}  "
    room = max(_LEAST_VALUE, width - cell_len(first))
    parts = _wrapped(clean(text[:MOST_TEXT]), room)
    words = header_words(name, content)
    yield [(first, "key"), (parts[0], "dim" if value is None or isinstance(value, bytes) else "")]
    for part in parts[1:]:
        yield [(" " * cell_len(first) + part, "")]
    for part in _wrapped(words, room) if words else ():
        yield [(" " * cell_len(first) + part, "dim")]


def _wrapped(text: str, width: int) -> list[str]:
    if text.isascii():
        return [text[at : at + width] for at in range(0, len(text), width)] or [""]
    return chop_cells(text, width) or [""]


def _json_line(line: str, width: int) -> Iterator[Pieces]:
    """Return a line of JSON, its names, numbers and brackets distinguished, wrapped below its beginning."""
    indent = min(len(line) - len(line.lstrip(" ")), width // 2)
    room = max(_LEAST_VALUE, width - indent)
    pieces: Pieces = [(" " * indent, "")]
    left = room
    for text, role in _json_pieces(line.strip(" ")):
        for number, part in enumerate(_parts(text, left, room)):
            if number:
                yield pieces
                pieces, left = [(" " * indent, "")], room
            pieces.append((part, role))
            left -= cell_len(part)
    yield pieces


def _parts(text: str, left: int, room: int) -> list[str]:
    """Cut a text so that the first part fits into what is left of a line, and the others into lines."""
    if text.isascii():
        return [text[:left], *(text[at : at + room] for at in range(left, len(text), room))]
    if cell_len(text) <= left:
        return [text]
    first = chop_cells(text, left)[0] if left > 1 else ""
    return [first, *chop_cells(text[len(first) :], room)]


def _json_pieces(line: str) -> Iterator[tuple[str, str]]:
    at = 0
    for found in _JSON.finditer(line):
        if found.start() > at:
            yield line[at : found.start()], ""
        text, colon, number, brackets = found.groups()
        if text is not None:
            yield clean(text), "key" if colon else ""
            if colon:
                yield colon, "dim"
        else:
            yield (number, "number") if number is not None else (brackets, "dim")
        at = found.end()
    if at < len(line):
        yield clean(line[at:]), ""


def _hex(data: bytes, width: int) -> Iterator[Pieces]:
    columns = _ROW if width >= _HEX_WIDTH else _ROW // 2
    for at in range(0, min(len(data), MOST_TEXT // 16), columns):
        row = data[at : at + columns]
        text = "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in row)
        yield [(f"{at:06x}  ", "dim"), (row.hex(" ").ljust(3 * columns), ""), (text, "dim")]
    if len(data) > MOST_TEXT // 16:
        yield [(f"… {len(data) - MOST_TEXT // 16:,} more bytes: x writes all of them", "dim")]

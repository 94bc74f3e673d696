"""The cells of a dump's row: how bytes are written behind an offset. A new way to write them is one entry of `UNITS`.

A unit reads a row's rest from left to right and stops at the first word that is no cell of it. How many of the cells
are bytes, and where the text column begins, the offsets of the rows say (`rows`).
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

_SEPARATORS: Final = r"[\s,:;┊\-]*"
_BAR: Final = re.compile(r"\s*(?:[|│¦]|-(?=\s))?[\s:]*")


class Cell(NamedTuple):
    """Some bytes of a row."""

    data: bytes
    start: int
    end: int
    """Where it is in the text behind the offset."""


Cells = list[Cell]


class Unit(NamedTuple):
    """A way to write bytes."""

    name: str
    read: Callable[[str], Cells]
    is_hex: bool = False


def _reader(word: str, value: Callable[[str], bytes | None], separators: str = _SEPARATORS) -> Callable[[str], Cells]:
    pattern = re.compile(rf"({word})(?=[\s|│¦┊,:;\-]|$){separators}")

    def read(rest: str) -> Cells:
        begin = _BAR.match(rest)
        at = begin.end() if begin else 0
        cells: Cells = []
        while found := pattern.match(rest, at):
            data = value(found[1])
            if data is None:
                break
            cells.append(Cell(data, at, found.end(1)))
            at = found.end()
            if rest[at : at + 1] in ("|", "│", "¦"):
                break
        return cells

    return read


def _hex(word: str) -> bytes | None:
    digits = word[2:] if word[:2] in ("0x", "0X", "\\x") else word
    return bytes.fromhex(digits) if len(digits) % 2 == 0 else None


def _prefixed(word: str) -> bytes | None:
    digits = word[2:]
    return bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits)


def _octal(word: str) -> bytes | None:
    value = int(word, 8)
    return value.to_bytes(1, "big") if value < 256 else None


def _octal_word(word: str) -> bytes | None:
    value = int(word, 8)
    return value.to_bytes(2, "little") if value < 1 << 16 else None


def _decimal(word: str) -> bytes | None:
    value = int(word)
    return (value & 255).to_bytes(1, "big") if -128 <= value < 256 else None


def _decimal_of_two(word: str) -> bytes | None:
    return _decimal(word.partition(" ")[0])


def _decimal_word(word: str) -> bytes | None:
    value = int(word)
    return value.to_bytes(2, "little") if value < 1 << 16 else None


def _binary(word: str) -> bytes | None:
    return int(word, 2).to_bytes(1, "big")


_NAMED: Final = {
    "\\0": 0, "\\a": 7, "\\b": 8, "\\t": 9, "\\n": 10, "\\v": 11, "\\f": 12, "\\r": 13, "\\\\": 92, "\\e": 27,
}  # fmt: skip
_MOST_BLANKS: Final = 8
"""Blanks at the end of a text column that may be gone."""
_HALF: Final = 8
"""Characters of a text column before a blank in its middle."""
_CHARACTER: Final = 4
"""Columns of a cell of `od -c` and `hexdump -c`."""


def _characters(rest: str) -> Cells:
    cells: Cells = []
    for at in range(0, len(rest), _CHARACTER):
        word = rest[at : at + _CHARACTER]
        text = word.strip()
        if len(word) < _CHARACTER:
            break
        if text in _NAMED:
            value = _NAMED[text]
        elif len(text) == 3 and text.isdigit() and text.isascii() and not set(text) & {"8", "9"} and int(text, 8) < 256:
            value = int(text, 8)
        elif len(text) <= 1 and word[:3].isspace() and (not text or "!" <= text <= "~"):
            value = ord(text or " ")
        else:
            break
        cells.append(Cell(bytes([value]), at, at + _CHARACTER))
    return cells


UNITS: Final = (
    Unit("hex", _reader(r"(?:0[xX]|\\x)?[0-9a-fA-F]{2,32}", _hex), is_hex=True),
    Unit("hex", _reader(r"0[xX][0-9a-fA-F]{1,16}", _prefixed), is_hex=True),
    Unit("octal", _reader(r"[0-3]?[0-7]{3}", _octal)),
    Unit("octal", _reader(r"[01][0-7]{5}", _octal_word)),
    Unit("binary", _reader(r"[01]{8}", _binary)),
    Unit("decimal", _reader(r"[0-9]{5}", _decimal_word)),
    Unit("decimal", _reader(r"-?[0-9]{1,3}", _decimal, r"[\s,;]*")),
    Unit("decimal and character", _reader(r"-?[0-9]{1,3} '(?:[^'\\]|\\[^\n]{1,3})'", _decimal_of_two, r"[\s,]*")),
    Unit("characters", _characters),
)
"""Tried in this order: a row's offsets mostly decide."""


def text_cells(cells: Cells, rest: str) -> int | None:
    """Return how many of the cells are bytes, by the text column behind them, which shows each as a character; None
    where no such column follows."""
    end = len(rest.rstrip())
    if end and rest[end - 1] in "|│<":
        end = len(rest[: end - 1].rstrip())
    shown = b"".join(cell.data for cell in cells)
    size = len(shown)
    usual = _width(rest[cells[0].end : cells[1].start]) if len(cells) > 2 else min(1, len(cells) - 1)
    for count in range(len(cells), 0, -1):
        # A column that begins with what looks like bytes begins where their cell does.
        begin = cells[count].start if count < len(cells) else _behind(rest, cells[-1].end, end)
        begin -= size - len(shown[:size].lstrip(b" "))  # blanks that the column begins with
        is_apart = _width(rest[cells[count - 1].end : begin]) > usual
        if (
            is_apart
            and size - _MOST_BLANKS <= end - begin <= size + 1
            and _shows(rest[begin:end].replace("┊", ""), shown[:size])
        ):
            return count
        size -= len(cells[count - 1].data)
    return None


def _width(between: str) -> int:
    return len(between.expandtabs(8))


def _behind(rest: str, at: int, end: int) -> int:
    while at < end and rest[at] in " \t|│¦>":
        at += 1
    return at


def _shows(column: str, data: bytes) -> bool:
    """Return whether a column of text shows bytes: printable ones as they are, others as any one character. Blanks at
    its end may be gone."""
    if len(column) == len(data) + 1 and column[_HALF : _HALF + 1] == " ":
        column = column[:_HALF] + column[_HALF + 1 :]  # as tshark writes followed streams
    if not column or len(column) > len(data):
        return False
    shown = column.ljust(len(data))
    return all(
        chr(byte) == each if 0x20 <= byte < 0x7F else each != " " or byte == 0 or at >= len(column)
        for at, (byte, each) in enumerate(zip(data, shown, strict=True))
    )

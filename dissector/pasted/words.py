"""Bytes without offsets: hex in words or without separators, base64, percent and caret notation.

Lines of nothing but hex follow each other without a word; a blank line, or any other, begins a new piece. Within a line
hex is found between other words, if it is long enough to be no number.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import unquote_to_bytes

from dissector.pasted.cells import UNITS, text_cells
from dissector.pasted.numbers import unquoted_numbers, without_comments
from dissector.pasted.pieces import Hole, Piece
from dissector.pasted.plain_text import Lines

_HEX_LINE: Final = re.compile(
    r"[\s>|`\"'(\[{<+]*(?:0[xX])?([0-9a-fA-F]{2}(?:[\s:,|.\-_]*(?:0[xX]|\\x)?[0-9a-fA-F]{2})*)[\s:,|.\-_`\"')\]}>;\\]*"
)
"""A line of hex, with marks, quotes or brackets around it."""
_HEX_RUN: Final = re.compile(
    r"(?<![0-9A-Za-z_%\\.\-])(?:0[xX]|\\{1,2}x)?("
    r"(?:[0-9a-fA-F]{2}){6,}(?![0-9A-Za-z_])|"
    r"[0-9a-fA-F]{2}(?:, ?[0-9a-fA-F]{2}){5,}(?![0-9A-Za-z_])|"
    r"(?:[0-9a-fA-F]{2})+(?:(?: {1,2}|[:;\-|])(?:[0-9a-fA-F]{2})+)+(?![0-9A-Za-z_]))"
)
"""Hex within a line."""
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LEAST_RUN: Final = 6
"""Bytes of the shortest hex within a line."""
_COMMENT_MARK: Final = re.compile(r"^\s*(?://+|#+|--|;+|\*)")
_ARROW: Final = re.compile(r"\s*([<>])(?![<>])")
_APART: Final = re.compile(r"  |\t")
_NO_HEX: Final = re.compile(r"[^0-9a-fA-F]")
_PREFIX: Final = re.compile(r"0[xX]|\\x")
_MORE: Final = re.compile(r"\s{0,9}(?:\.\.\.|…)?\s{0,9}\(?(?:and )?([0-9,]{1,12}) more (?:bytes|items)")
_BASE64_LINE: Final = re.compile(r"[\s>|`\"']*([A-Za-z0-9+/_\-]{2,}={0,2})[\s`\"',]*")
_BASE64: Final = re.compile(r"(?<![A-Za-z0-9+/_\-])A[A-Za-z0-9+/_\-]{18,}={0,2}")
_ANNOTATED: Final = re.compile(
    r"[\s|*`]*(?:[A-Za-z_][\w ./()]{0,60}[:=]\s+)?((?:[0-9a-fA-F]{2})+(?:[ :](?:[0-9a-fA-F]{2})+)*)"
    r"(?=\s*$|`?\s+(?:[=:(\-|]|[A-Za-z_]{3})|`)"
)
_MARKED: Final = re.compile(
    r"(?<![0-9A-WYZa-wyz])[0-9a-fA-F]{2}(?P<mark>[^0-9A-Za-z\n]{1,4}x?|[^0-9A-Za-z\n]{0,3}x)[0-9a-fA-F]{2}"
    r"(?:(?P=mark)[0-9a-fA-F]{2}){6,}(?![0-9A-Za-z])"
)
"""Hex with the same marks between all bytes, whichever: ``[00][00]``, ``\\x00 \\x00``, ``00 + 00``."""
_DIGITS: Final = (
    (re.compile(r"(?<![^\s\[(])[01]{8}(?:[ ,;]{1,5}[01]{8}){7,}(?![^\s\])])"), 2),
    (re.compile(r"(?<![^\s\[(])[0-3][0-7]{2}(?:[ ,;]{1,5}[0-3][0-7]{2}){7,}(?![^\s\])])"), 8),
)
_DIGIT: Final = re.compile(r"[0-7]+")
_LONGEST_ROW: Final = 2_048
"""Characters of the longest line that may have a text column."""
_LEAST_BASE64: Final = 27
"""Characters that are base64 without padding."""
_LONGEST_LINE: Final = 100
"""Characters of a line of base64 that goes on."""
_PERCENT: Final = re.compile(r"%[0-9a-fA-F]{2}(?:%[0-9a-fA-F]{2}|[A-Za-z0-9_.~\-+*!'():/@$,])*")
_CARET: Final = re.compile(r"(?:M-)?\^@[ -~\t]*")
_CARETS: Final = re.compile(r"(M-)?(?:\^([@-_?])|<([89a-fA-F][0-9a-fA-F])>|([ -~\t]))")
_ENTITY: Final = re.compile(r"&#(?:0|[xX]0{1,2});[ -~\t]*")
_ENTITIES: Final = re.compile(r"&#(?:([0-9]{1,3})|[xX]([0-9a-fA-F]{1,2}));|([ -~\t])")
_LEAST: Final = 8


def hex_words(lines: Lines) -> list[Piece]:
    """Return hex: lines of nothing else, and runs within lines."""
    pieces: list[Piece] = []
    follows, commented, indent = False, False, ""
    for number, line in enumerate(lines.texts):
        text, start = without_comments(line), lines.starts[number]
        if not text.strip():
            text = _COMMENT_MARK.sub(lambda found: " " * len(found[0]), line)  # what is commented out may be hex
            least = 2 if commented else 2 * _LEAST
            if len(_NO_HEX.sub("", text)) < least or _HEX_LINE.fullmatch(text) is None:
                follows = follows and bool(line.strip())  # a comment by itself interrupts nothing
                continue
            commented = True
        else:
            commented = False
        whole = _HEX_LINE.fullmatch(text)
        if (whole is None or _APART.search(line.strip())) and (column := _column(line)):
            text = line[:column]
            whole = _HEX_LINE.fullmatch(text)
        if whole is not None and _reads_as_words(whole[1]):
            own = "\t" if line.startswith("\t") else ""
            data = _bytes(whole[1])
            arrow = _ARROW.match(text)
            if follows and own == indent:
                pieces[-1].add(data, start + whole.end(1))
            elif data:
                pieces.append(Piece(start + whole.start(1), start + whole.end(1), data))
            if arrow and not follows:
                pieces[-1].from_client = arrow[1] == ">"
            follows, indent = bool(pieces), own
            continue
        follows = False
        for found in list(_HEX_RUN.finditer(text)) or _HEX_RUN.finditer(line):
            data = _bytes(found[1])
            if len(data) < _LEAST_RUN or _UUID.fullmatch(found[1]):
                continue
            more = _MORE.match(text, found.end())
            holes = [Hole(len(data), int(more[1].replace(",", "")))] if more and more[1].strip(",") else []
            pieces.append(Piece(start + found.start(), start + found.end(), data, holes=holes))
    for piece in pieces:
        piece.finish()
    _mark_by_tab(pieces, lines)
    return pieces


def annotated_words(lines: Lines) -> list[Piece]:
    """Return hex of which each line has some bytes, and words before or behind that say what they are."""
    pieces: list[Piece] = []
    follows = False
    for start, line in zip(lines.starts, lines.texts, strict=True):
        found = _ANNOTATED.match(line) if len(line) <= _LONGEST_ROW else None
        if found is None:
            follows = False
        elif follows:
            pieces[-1].add(_bytes(found[1]), start + found.end(1))
        else:
            pieces.append(Piece(start + found.start(1), start + found.end(1), _bytes(found[1])))
            follows = True
    for piece in pieces:
        piece.finish()
    return [piece for piece in pieces if len(piece.data) >= _LEAST]


def marked_words(lines: Lines) -> list[Piece]:
    """Return hex of which each two bytes have the same marks between them."""
    return [
        Piece(start + found.start(), start + found.end(), bytes.fromhex("".join(found[0].split(found["mark"]))))
        for start, line in zip(lines.starts, lines.texts, strict=True)
        for found in _MARKED.finditer(line)
    ]


def digit_words(lines: Lines) -> list[Piece]:
    """Return bytes in binary or octal digits without a prefix."""
    return [
        Piece(start + found.start(), start + found.end(), bytes(int(word, base) for word in _DIGIT.findall(found[0])))
        for start, line in zip(lines.starts, (unquoted_numbers(lines) or lines).texts, strict=True)
        for pattern, base in _DIGITS
        for found in pattern.finditer(line)
    ]


def _column(line: str) -> int:
    """Return where the text column of a row without an offset begins, as `ngrep -x` prints it; 0 if it has none."""
    if len(line) > _LONGEST_ROW:
        return 0
    cells = UNITS[0].read(line)
    count = text_cells(cells, line) if cells else None
    return cells[count - 1].end if count else 0


def _mark_by_tab(pieces: list[Piece], lines: Lines) -> None:
    """Take what is behind a tab for the server's, if not all is: so does `tshark -z follow`."""
    tabs = [lines.texts[lines.number(piece.start) - 1].startswith("\t") for piece in pieces]
    if any(tabs) and not all(tabs):
        for piece, tab in zip(pieces, tabs, strict=True):
            piece.from_client = not tab


def _reads_as_words(text: str) -> bool:
    """Return whether every word has whole bytes, and they are no UUID: `abc def` is no hex."""
    return _UUID.fullmatch(text) is None and all(
        len(_PREFIX.sub("", word)) % 2 == 0 for word in re.split(r"[\s:,|.\-_]+", text)
    )


def _bytes(text: str) -> bytes:
    return bytes.fromhex(_NO_HEX.sub("", _PREFIX.sub("", text)))


def base64_words(lines: Lines) -> list[Piece]:
    """Return base64, standard and for URLs, on one line or on lines of the same length. A frame begins with a zero, and
    so with an ``A``."""
    pieces: list[Piece] = []
    number = 0
    while number < len(lines.texts):
        line, first = lines.texts[number], number
        for found in _BASE64.finditer(line):
            text, end = found[0], lines.starts[number] + found.end()
            alone = found.end() >= len(line.rstrip(" \t\"'`,")) and len(text) <= _LONGEST_LINE
            while alone and not text.endswith("=") and number + 1 < len(lines.texts):
                more = _BASE64_LINE.fullmatch(lines.texts[number + 1])
                if more is None or len(more[1]) > len(found[0]):
                    break
                number += 1
                text += more[1]
                end = lines.starts[number] + more.end(1)
                if len(more[1]) < len(found[0]):
                    break
            if len(text) < _LEAST_BASE64 and not (len(text) % 4 == 0 and text.endswith("=")):
                continue  # more likely a name
            data = _from_base64(text)
            if data is not None:
                pieces.append(Piece(lines.starts[first] + found.start(), end, data))
        number += 1
    return pieces


def _from_base64(text: str) -> bytes | None:
    plain = text.translate(str.maketrans("-_", "+/")).rstrip("=")
    if len(plain) % 4 == 1:
        plain = plain[:-1]
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4))
    except binascii.Error:
        return None


def _runs(
    pattern: re.Pattern[str], decode: Callable[[str], bytes], mark: str, least: int
) -> Callable[[Lines], list[Piece]]:
    """Return what reads runs of a notation in which a byte is `mark` and more; a run has at `least` so many of them."""

    def found_in(lines: Lines) -> Iterator[Piece]:
        for start, line in zip(lines.starts, lines.texts, strict=True):
            if mark not in line:
                continue
            for found in pattern.finditer(line):
                if found[0].count(mark) >= least:
                    yield Piece(start + found.start(), start + found.end(), decode(found[0].rstrip()))

    return lambda lines: list(found_in(lines))


def _from_carets(text: str) -> bytes:
    data = bytearray()
    for high, control, digits, plain in _CARETS.findall(text):
        byte = int(digits, 16) if digits else 0x7F if control == "?" else ord(control) - 64 if control else ord(plain)
        data.append(byte | 0x80 if high else byte)
    return bytes(data)


def _from_entities(text: str) -> bytes:
    return bytes(
        (int(decimal) if decimal else int(digits, 16) if digits else ord(plain)) & 255
        for decimal, digits, plain in _ENTITIES.findall(text)
    )


def _from_percent(text: str) -> bytes:
    """A plus is a blank, as in forms of HTML, where no blank is written otherwise."""
    return unquote_to_bytes(text if "%20" in text else text.replace("+", " "))


percent_words: Final = _runs(_PERCENT, _from_percent, "%", 4)
"""Percent-encoded bytes, as in URLs (RFC 3986)."""
caret_words: Final = _runs(_CARET, _from_carets, "^", 3)
"""What `cat -v`, `less` and editors show: ``^@^@^@1``, ``M-^?``, ``<80>``."""
entity_words: Final = _runs(_ENTITY, _from_entities, "&#", 3)
"""Characters of XML and HTML, those that are no text: ``&#0;&#0;&#0;1``."""

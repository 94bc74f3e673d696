"""Lists of numbers, one a byte, as programming languages write and print them: ``0x00, 0x31``, ``[0 0 0 49]``, signed
ones of Java, ``<<0,0,0,49,"text">>`` of Erlang, with casts and suffixes; with the index of each, as debuggers print
them (``[3] = 0x31``); in hex of one digit or two without a prefix (``[0, 0, 0, 31, d]``).

A number is a byte if it is from -128 to 255. Numbers without `0x` are decimal, but in lists of hex. A list has at
least eight.
"""

import re
from typing import Final

from dissector.pasted.escapes import decoded_escapes
from dissector.pasted.pieces import Hole, Piece
from dissector.pasted.plain_text import Lines

_ITEM: Final = re.compile(
    r"(?:\(\s*(?:unsigned )?(?:byte|char|uint8_t|u8|sbyte)\s*\)\s*|\b(?:byte|toByte|Byte|uint8)\(\s*)?"
    r"(?:(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]{1,2})|&[hH](?P<basic>[0-9a-fA-F]{1,2})"
    r"|16#(?P<erlang>[0-9a-fA-F]{1,2})#?"
    r"|\$(?P<dollar>[0-9a-fA-F]{2})|0b(?P<binary>[01]{1,8})|0o(?P<octal>[0-7]{1,3})|(?P<decimal>[0-9]{1,3})"
    r"|0?(?P<ending>[0-9a-fA-F]{2})[hH])"
    r"(?:[_']?[ui]8|uy|[uU][lL]?|[yY]|\.toByte\(\)|:8)?\)?(?![0-9A-Za-z_.])(?: '(?:[^'\\\n]|\\[^\n]{1,3})')?"
    r"|(?P<character>b?'(?:[^'\\\n]|\\[^\n]{1,3})')|(?P<string>\"(?:[^\"\\\n]|\\.)*\"))"
)
_GAP: Final = re.compile(r"[\s,;]*\\?[\s,;]*(?:(?<=\s)-\s+|(?<=\s)(?:\.?(?:byte|BYTE|db|DB)|dc\.b)[ \t]+)?")
"""Between items; lines of a list may begin with a dash, as in YAML, or with what assemblers call bytes."""
_START: Final = re.compile(
    r"(?<![0-9A-Za-z_.:/\-])[-+]?(?:0[xX]|&[hH]|16#|\$(?=[0-9a-fA-F]{2})|0b|0o)?[0-9a-fA-F]"
    r"|\((?=\s*(?:unsigned )?(?:byte|char|uint8_t|u8|sbyte)\s*\))|\b(?:byte|Byte|uint8)\(|\bb?'"
)
_MORE: Final = re.compile(r"\s{0,9},?\s{0,9}(?:\.\.\.|…)\s{0,9}\(?(?:and )?([0-9]{1,9}) more")
_REPEATS: Final = re.compile(r"\s*<repeats ([0-9]{1,9}) times>")
"""What gdb prints in place of equal items."""
_MOST_REPEATED: Final = 1 << 20
"""Bytes of a text that may stand for such items."""
_INDEXED: Final = re.compile(
    r"(?<![0-9A-Za-z_.\-])[\[(\"']?([0-9]{1,7})[\])\"']?\s{0,8}(?:=>|[=:]|[\t ])\s{0,8}(?:\(byte\)\s{0,8}|int\()?"
    r"(-?(?:0[xX][0-9a-fA-F]{1,2}|[0-9]{1,3}))(?![0-9A-Za-z_.])"
)
_INDEX_GAP: Final = 40
"""Characters between a number and the next index: a type, a character, a line end."""
_HEX_LIST: Final = re.compile(
    r"(?<![0-9A-Za-z_.:/\-'\"])(['\"]?)(?:0[xX])?[0-9a-fA-F]{1,2}\1"
    r"(?:(?:\s*,\s*|\s+)\1(?:0[xX])?[0-9a-fA-F]{1,2}\1(?![0-9A-Za-z_.:/])){7,}"
)
_HEX_ITEM: Final = re.compile(r"(?:0[xX])?([0-9a-fA-F]{1,2})(?![xX])")
_QUOTED: Final = re.compile(r"(['\"])([-+]?(?:0[xXbBoO])?[0-9a-fA-F]{1,8})\1")
"""A number in quotes."""
_BROKEN: Final = re.compile(
    r"\b0(?:[xX]\s[\s>|]{0,40}[0-9a-fA-F]|\s[\s>|]{0,40}[xX][0-9a-fA-F]|[xX][0-9a-fA-F]\s[\s>|]{0,40}[0-9a-fA-F][,;\])}])"
)
"""A number with a line's end in it."""
_LEAST: Final = 8
_DIGITS: Final = {
    "hex": 16,
    "basic": 16,
    "erlang": 16,
    "dollar": 16,
    "ending": 16,
    "binary": 2,
    "octal": 8,
    "decimal": 10,
}
_BLOCKS: Final = (("/*", "*/"), ("(*", "*)"), ("{-", "-}"))
_REST: Final = re.compile(
    r"(?://|#(?!(?:producer|consumer)-[0-9])|(?<!<)--(?![->])|(?<!\S);|%(?![0-9a-fA-F]{2}|[0-7]\||[wi][\[({])"
    r"|(?<=[0-9a-fA-F,]) +(?:←|<-)|\bREM\b|…)[^\n]*"
)
"""`%7|` and `#producer-1` are of the lines that librdkafka logs, `%w[` opens a list of Ruby's."""
_KEPT: Final = re.compile(r"[^\n]")


def without_comments(text: str) -> str:
    """Return a text with blanks in place of its comments: places stay as they are."""
    for opening, closing in _BLOCKS:
        if opening in text:
            text = _without_blocks(text, opening, closing)
    return _REST.sub(lambda found: " " * len(found[0]), text)


def _without_blocks(text: str, opening: str, closing: str) -> str:
    parts: list[str] = []
    at = 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start + len(opening))) >= 0:
        end += len(closing)
        parts += [text[at:start], _KEPT.sub(" ", text[start:end])]
        at = end
    return "".join([*parts, text[at:]])


def unquoted_numbers(lines: Lines) -> Lines | None:
    """Return the lines with blanks in place of the quotes around numbers; None if they have no list of such."""
    text = "\n".join(lines.texts)
    made, count = _QUOTED.subn(r" \2 ", text)
    return Lines(made) if count >= _LEAST else None


def quoted_number_lists(lines: Lines) -> list[Piece]:
    """Return the lists of numbers that stand in quotes each: ``["0", "0", "0", "49"]``."""
    plain = unquoted_numbers(lines)
    return [] if plain is None else number_lists(plain)


def number_lists(lines: Lines, *, has_comments: bool = True) -> list[Piece]:
    """Return the lists of numbers in a text; what begins like a comment may stand in a string where it has none."""
    text = "\n".join(map(without_comments, lines.texts) if has_comments else lines.texts)
    if not has_comments and '"' not in text and "'" not in text:
        return []
    if has_comments and ("/*" in text or "(*" in text):
        text = without_comments(text)
    if _BROKEN.search(text):
        return []  # of numbers that a line's end breaks, their ends would be read as others
    pieces: list[Piece] = []
    at, budget = 0, _MOST_REPEATED
    while start := _START.search(text, at):
        data = bytearray()
        at, end, items = start.start(), start.start(), 0
        while found := _ITEM.match(text, at):
            value = _value(found)
            if value is None or (not items and found["string"] is not None):
                break
            data += value
            items, end = items + 1, found.end()
            repeats = _REPEATS.match(text, end)
            if value and repeats:
                copies = max(0, min(int(repeats[1]) - 1, budget // len(value)))
                data += value * copies
                budget -= copies * len(value)
                end = repeats.end()
            gap = _GAP.match(text, end)
            at = gap.end() if gap else end
            if at == end:
                break
        if items >= _LEAST:
            more = _MORE.match(text, end)
            holes = [Hole(len(data), int(more[1]))] if more else []
            pieces.append(Piece(start.start(), end, bytes(data), holes=holes))
        at = max(end, start.end())
    return pieces


def indexed_numbers(lines: Lines) -> list[Piece]:
    """Return the lists whose numbers each have an index before them, from 0 or 1 on."""
    text = "\n".join(lines.texts)
    pieces: list[Piece] = []
    data, start, end, following = bytearray(), 0, 0, -1

    def finish() -> None:
        if len(data) >= _LEAST:
            pieces.append(Piece(start, end, bytes(data)))

    for found in _INDEXED.finditer(text):
        index, value = int(found[1]), int(found[2], 0) if "x" in found[2].lower() else int(found[2])
        is_byte = -128 <= value < 256
        if not (is_byte and index == following and found.start() - end <= _INDEX_GAP):
            finish()
            data.clear()
            if not is_byte or index > 1:
                following = -1
                continue
            start = found.start()
        data.append(value & 255)
        end, following = found.end(), index + 1
    finish()
    return pieces


def hex_lists(lines: Lines) -> list[Piece]:
    """Return the lists of hex numbers that have no prefix and may have one digit, or that stand in quotes each."""
    text = "\n".join(map(without_comments, lines.texts))
    if _BROKEN.search(text):
        return []
    return [
        Piece(found.start(), found.end(), bytes(int(digits, 16) for digits in _HEX_ITEM.findall(found[0])))
        for found in _HEX_LIST.finditer(text)
    ]


def _value(found: re.Match[str]) -> bytes | None:
    """Return the bytes of an item; None if it is none."""
    if found["string"] is not None:
        return decoded_escapes(found["string"][1:-1])
    if found["character"] is not None:
        return decoded_escapes(found["character"].strip("b")[1:-1])
    kind = next(name for name in _DIGITS if found[name] is not None)
    value = int(found[kind], _DIGITS[kind])
    value = -value if found["sign"] == "-" else value
    return bytes([value & 255]) if -128 <= value < 256 else None

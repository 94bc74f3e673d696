r"""Literals with escapes: strings of Python, C, Go, Rust, JavaScript, Ruby, Haskell, of `strace` and `bpftrace`, and
bare ``\x00\x00``.

Literals that follow each other with nothing but a sign between them are one. What `strace` cut (``"..."...``) is a hole
of the size that it prints. A character beyond ASCII is its UTF-8, ``\u00e9`` the byte E9 as in JavaScript and JSON.
"""

import re
from typing import Final

from dissector.pasted.labels import descriptor_of
from dissector.pasted.pieces import Hole, Piece
from dissector.pasted.plain_text import Lines

_LITERAL: Final = re.compile(
    r"(?<![A-Za-z0-9_\\])(?:[bBcuULrR@$]{1,2}|u8|br)?([\"'`])((?:(?!\1)[^\\\n]|\\[^\n]|\\\n)*)\1"
)
_BARE: Final = re.compile(r"(?:\\x[0-9a-fA-F]{2}|\\u00[0-9a-fA-F]{2}|\\[0-7]{1,3})(?:\\[^\n]|[^\\\n\"'`])*")
_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|[uU]\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})"
    r"|(NUL|SOH|STX|ETX|EOT|ENQ|ACK|BEL|BS|HT|LF|VT|FF|CR|SO(?!H)|SI|DLE|DC[1-4]|NAK|SYN|ETB|CAN|EM|SUB|ESC"
    r"|FS|GS|RS|US|SP|DEL)"
    r"|\^([@-_])|(\n)\s*|(&)|([^\n]))"
)
_HASKELL: Final = re.compile(r"\\(?:NUL|SOH|STX|ETX|DC[1-4]|DLE)")
_DECIMAL: Final = re.compile(r"\\([0-9]{1,3})")
_FOUR_DIGITS: Final = re.compile(r"\\x00[0-9a-fA-F]{2}(?![0-9a-fA-F])")
"""How C# writes a byte."""
_ZERO: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\0")
_NAMES: Final = {
    name: number for number, name in enumerate((
        "NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "HT", "LF", "VT", "FF", "CR", "SO", "SI", "DLE",
        "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US", "SP",
    ))
} | {"DEL": 127}  # fmt: skip
_LETTERS: Final = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "e": 27}
_BETWEEN: Final = re.compile(r"[\s+.\\,&]*")
_VECTOR: Final = re.compile(r"(?:\.\.\.)?, iov_len=[0-9]+\}(?:, \{iov_base=)?")
_CUT: Final = re.compile(r"(?:\.\.\.|…)")
_RESULT: Final = re.compile(r"[^\n]{0,2000}?\)\s*=\s*([0-9]{1,9})\s*$", re.MULTILINE)
"""The end of a line of `strace`, near enough that many literals on one line take linear time."""
_FAR: Final = 240
"""Characters between two literals that are one; and of what stands before them."""
_FILLER: Final = "\u200b"
"""In place of a character that is taken out, so that places stay as they are; no plain text has it."""
_NESTED: Final = re.compile(rf"(?<![A-Za-z0-9_])[bB]?(\\\"|')((?:{_FILLER}\\[^\n]|(?!\1)[^\n])*?)\1")
_LEAST: Final = 4


def decoded_escapes(
    text: str, *, wide: bool = False, narrow: bool = False, zeros: bool = False, decimal: bool = False
) -> bytes:
    r"""Return the bytes of a literal's text. With `wide`, ``\u00e9`` is UTF-8; with `narrow`, a character is a byte;
    with `zeros`, ``\01`` is a zero and a digit, as in Rust and C#; with `decimal`, ``\049`` is a 1, as in OCaml."""
    encoding = "latin-1" if narrow else "utf-8"
    if "\\" not in text:
        return text.encode(encoding, "replace")
    if text.count("\\x") >= _LEAST and text.count("\\x") == len(_FOUR_DIGITS.findall(text)):
        text = text.replace("\\x", "\\u")
    if zeros:
        text = _ZERO.sub(r"\1\\x00", text)
    elif decimal or _HASKELL.search(text) or _has_decimals(text):
        text = _DECIMAL.sub(lambda found: f"\\x{int(found[1]) & 255:02x}", text)
    made = bytearray()
    at = 0
    for found in _ESCAPE.finditer(text):
        made += text[at : found.start()].encode(encoding, "replace")
        made += _escaped(found, wide=wide)
        at = found.end()
    return bytes(made + text[at:].encode(encoding, "replace"))


def _has_decimals(text: str) -> bool:
    """Return whether numbers are decimal, as in Lua and OCaml: all have three digits, and one is no octal number."""
    numbers = _DECIMAL.findall(text)
    return all(len(each) == 3 for each in numbers) and any("8" in each or "9" in each for each in numbers)


def _escaped(found: re.Match[str], *, wide: bool) -> bytes:
    byte, braced, short, long, octal, name, control, broken, nothing, other = found.groups()
    if byte is not None:
        return bytes([int(byte, 16)])
    for digits in (braced, short, long):
        if digits is not None:
            value = int(digits, 16)
            return bytes([value]) if value < 256 and not wide else chr(min(value, 0x10FFFF)).encode("utf-8", "replace")
    if octal is not None:
        return bytes([int(octal, 8) & 255])
    if name is not None:
        return bytes([_NAMES[name]])
    if control is not None:
        return bytes([ord(control) - 64])
    if broken is not None or nothing is not None:
        return b""
    return bytes([_LETTERS[other]]) if other in _LETTERS else str(other).encode("utf-8", "replace")


def string_literals(
    lines: Lines,
    *,
    twice: bool = False,
    wide: bool = False,
    narrow: bool = False,
    zeros: bool = False,
    decimal: bool = False,
) -> list[Piece]:
    r"""Return literals in which something is escaped. With `twice`, escapes are escaped themselves (``\\x00``), as
    where a text stands in JSON."""
    text = "\n".join(lines.texts)
    if "\\" not in text or (zeros and "\\0" not in text):
        return []
    if decimal and not _DECIMAL.search(text):
        return []
    if twice:
        return _escaped_twice(text.replace("\\\\", _FILLER + "\\"))
    pieces: list[Piece] = []
    for found in _LITERAL.finditer(text):
        start, end, body = _inner(found)
        data = decoded_escapes(body, wide=wide, narrow=narrow, zeros=zeros, decimal=decimal)
        last = pieces[-1] if pieces else None
        if last is not None and not last.holes and _goes_on(text[last.end : min(start, last.end + _FAR)]):
            last.add(data, end)
        elif "\\" in body:
            last = Piece(start, end, data)
            descriptor = descriptor_of(text[max(0, start - _FAR) : start].rpartition("\n")[2])
            last.connection = 1 if descriptor is None else descriptor + 2
            pieces.append(last)
        else:
            continue
        if _CUT.match(text, end):
            last.finish()
            result = _RESULT.match(text, end)
            last.holes = [Hole(len(last.data), max(0, int(result[1]) - len(last.data)) if result else 0)]
    for piece in pieces:
        piece.finish()
    taken = [piece for piece in pieces if len(piece.data) >= _LEAST]
    return _with_bare(text, taken)


def _escaped_twice(text: str) -> list[Piece]:
    """Return literals inside others, whose escapes are marked with fillers."""
    pieces = [
        Piece(found.start(), found.end(), decoded_escapes(found[2].replace(_FILLER, "")))
        for found in _NESTED.finditer(text)
        if found[2].count(_FILLER) >= _LEAST
    ]
    return _with_bare(text, pieces)


def _inner(found: re.Match[str]) -> tuple[int, int, str]:
    """Return place and text of a literal; of one in another, as logs print it, the inner one."""
    start, end, body = found.start(), found.end(), found[2]
    inner = _LITERAL.search(body)
    if inner is not None and inner[2].count("\\") == body.count("\\") > 0:
        return found.start(2) + inner.start(), found.start(2) + inner.end(), inner[2]
    return start, end, body


def _goes_on(between: str) -> bool:
    """Return whether the text between two literals makes them one."""
    if len(between) >= _FAR or (between.count("\n") > 1 and "\n\n" in between.replace(" ", "")):
        return False
    return _BETWEEN.fullmatch(between) is not None or _VECTOR.fullmatch(between) is not None


def _with_bare(text: str, pieces: list[Piece]) -> list[Piece]:
    """Return the literals, and escapes outside of quotes."""
    found: list[Piece] = []
    at = 0
    for piece in [*pieces, None]:
        end = len(text) if piece is None else piece.start
        for run in _BARE.finditer(text, at, end):
            whole = run[0].rstrip()
            if whole.count("\\") >= _LEAST:
                found.append(Piece(run.start(), run.start() + len(whole), decoded_escapes(whole.replace(_FILLER, ""))))
        if piece is not None:
            found.append(piece)
            at = piece.end
    return found

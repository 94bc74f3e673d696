"""Makes a text plain: its encoding, colors of terminals, line ends, and characters that a word processor puts in.

Invariant: time and memory are linear in the bytes, whatever they are.
"""

import codecs
import re
from bisect import bisect_right
from typing import Final

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip
"""Byte order marks; that of UTF-32 begins with that of UTF-16."""
_LOOK: Final = 256
_ESCAPE: Final = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\^_])")
"""Control sequences of terminals (ECMA-48)."""
_PLAIN: Final = str.maketrans({
    "\xa0": " ", "\u2007": " ", "\u202f": " ", "\u200b": None, "\ufeff": None, "\xad": None, "\x07": None,
    "“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "‚": "'", "‑": "-", "\x0c": "\n",
})  # fmt: skip
_ENTITY: Final = re.compile(r"&(?:(lt|gt|quot|apos|amp|nbsp|bsol)|#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
_ZERO: Final = re.compile(r"&#(?:0|[xX]0{1,2});")
"""No text has it: then those with numbers are bytes, which are read later."""
_ENTITIES: Final = {"lt": "<", "gt": ">", "quot": '"', "apos": "'", "amp": "&", "nbsp": " ", "bsol": "\\"}
_BREAK: Final = re.compile(r"<br\s*/?>\n?", re.IGNORECASE)
_TAG: Final = re.compile(r"</?(?:pre|code|span|div|p|br|tt|b|i|td|tr|th|table|tbody|html|body)\b[^<>\n]{0,200}>")
"""Tags of HTML around what is pasted."""
_CELL: Final = re.compile(r"</(?:td|th)>\s*", re.IGNORECASE)
_ROW: Final = re.compile(r"</tr>\n?", re.IGNORECASE)
_FENCE: Final = re.compile(
    r"(?m)^([ \t>]*)(?:```|\{(?:noformat|code|quote)(?::[\w=|.#]*)?\})|(?:```|\{(?:noformat|code|quote)\})[ \t]*$"
)
"""What chats and trackers put around code, mostly on lines of their own."""
_NO_TEXT: Final = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")


def encoding_of(head: bytes) -> str | None:
    """Return the encoding of a text that begins with these bytes; None if they are no text."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    look = head[:_LOOK]
    pairs = len(look) // 2
    if pairs > 1 and look.count(0) >= pairs * 3 // 4:
        high, low = look[1 : 2 * pairs : 2], look[0 : 2 * pairs : 2]
        for zeros, others, name in ((high, low, "utf-16-le"), (low, high, "utf-16-be")):
            if zeros.count(0) >= pairs * 3 // 4 and not others.count(0) and not _NO_TEXT.search(others):
                return name
    return None if _NO_TEXT.search(head) else "utf-8"


def plain_text(data: bytes) -> str | None:
    """Return a text without what is only for display; None if the bytes are no text."""
    encoding = encoding_of(data)
    if encoding is None:
        return None
    text = data.decode(encoding, "replace").translate(_PLAIN)
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "<br" in text or "<BR" in text:
        text = _BREAK.sub("\n", text)
    if "```" in text or "{noformat" in text or "{code" in text or "{quote" in text:
        text = _FENCE.sub(r"\1", text)
    if "</t" in text or "</T" in text:
        text = _ROW.sub("\n", _CELL.sub("  ", text))
    if "</" in text:
        text = _TAG.sub("", text)
    if "&" in text:
        has_bytes = _ZERO.search(text) is not None
        text = _ENTITY.sub(lambda found: found[0] if has_bytes and not found[1] else _entity(found), text)
    return text


def _entity(found: re.Match[str]) -> str:
    """Return the character of an HTML entity; one that would be no text stays as it is."""
    name, decimal, hexadecimal = found.groups()
    if name is not None:
        return _ENTITIES[name]
    value = int(decimal) if decimal is not None else int(hexadecimal, 16)
    return chr(value).translate(_PLAIN) if 0x20 <= value < 0xD800 and value != 0x7F else found[0]


_SEVERAL: Final = 3
"""Lines of rows that are surely a dump."""


class Lines:
    """The lines of a text, and where they are in it."""

    def __init__(self, text: str) -> None:
        self.texts = text.split("\n")
        self.starts: list[int] = []
        at = 0
        for line in self.texts:
            self.starts.append(at)
            at += len(line) + 1

    def number(self, at: int) -> int:
        """Return the number of the line with a character, from 1."""
        return bisect_right(self.starts, at)

    def without(self, spans: list[tuple[int, int]]) -> "Lines":
        """Return the lines, those blank that are in spans of several lines. Places stay as they are."""
        blank: set[int] = set()
        for start, end in spans:
            first, last = self.number(start), self.number(max(start, end - 1))
            if last - first >= _SEVERAL - 1:
                blank.update(range(first - 1, last))
        if not blank:
            return self
        made = Lines("")
        made.texts = [" " * len(text) if number in blank else text for number, text in enumerate(self.texts)]
        made.starts = self.starts
        return made

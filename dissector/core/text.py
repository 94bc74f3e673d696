"""Words from the wire made safe for terminals, markup, file names and logs, and numbers turned to text.

`clean` is the one gate: whatever came out of a capture, or is named after something in one, passes it before a person
sees it. It leaves printable text alone; C0 and DEL become control pictures; C1, bidi, zero-width, line separators and
surrogates become visible ``\\u{…}``. Markup is a matter of the widget: print what it returns with markup off.
"""

import re
from typing import Final

HOSTILE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\U000e0000-\U000e0fff]"
)
"""What a terminal might act on, or not show: one character of it."""


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"\\u{{{code:x}}}"


def clean(text: str) -> str:
    """`text` with every character made visible that could move, hide, reorder or colour what a terminal shows."""
    return text if text.isascii() and text.isprintable() else HOSTILE.sub(_visible, text)


def counted(count: int, what: str, several: str = "") -> str:
    """So many of something, in English: ``1 row``, ``1,204 rows``; `several` where that is not just an s more."""
    return f"{count:,} {what if count == 1 else several or what + 's'}"


def duration(ns: int) -> str:
    """Nanoseconds for people: ``812 µs``, ``2.0 ms``, ``1.250 s``."""
    if ns < 0:
        return f"-{duration(-ns)}"
    if ns < 1_000_000:
        return f"{ns // 1_000} µs"
    if ns < 1_000_000_000:
        return f"{ns / 1_000_000:.1f} ms"
    return f"{ns / 1_000_000_000:.3f} s"


def size(count: int) -> str:
    """A count of bytes for people, four characters or fewer where it can be: ``142``, ``8.1k``, ``3.2M``."""
    if count < 1_000:
        return str(count)
    for unit, scale in (("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)):
        if count < scale * 1_000:
            return f"{count / scale:.1f}{unit}" if count < scale * 10 else f"{count // scale}{unit}"
    return f"{count // 1_000_000_000}G"


def seconds(ns: int) -> str:
    """A time relative to the capture's first packet, in seconds with microseconds."""
    sign = "-" if ns < 0 else ""
    whole, rest = divmod(abs(ns), 1_000_000_000)
    return f"{sign}{whole}.{rest // 1_000:06d}"


BLOCKS: Final = " ▏▎▍▌▋▊▉█"


def bar(share: float, width: int) -> str:
    """A bar of `width` cells at most; anything more than nothing is seen."""
    eighths = max(round(share * width * 8), 1 if share > 0 else 0)
    whole, rest = divmod(min(eighths, width * 8), 8)
    return ("█" * whole + (BLOCKS[rest] if rest else "")).ljust(width)

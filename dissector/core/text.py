"""Text from the wire made safe for terminals, markup, file names and logs; numbers as text.

All text that comes from a capture passes `clean` before it is shown. Printable text stays as it is; C0 and DEL become
control pictures; C1, bidi, zero-width, line separators and surrogates become visible ``\\u{…}``. Markup is not escaped:
widgets must show the text with markup off.
"""

import re
from typing import Final

HOSTILE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\U000e0000-\U000e0fff]"
)
"""A character that a terminal might act on, or not show."""


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"\\u{{{code:x}}}"


def clean(text: str) -> str:
    """Make every character visible that could move, hide, reorder or color what a terminal shows."""
    return text if text.isascii() and text.isprintable() else HOSTILE.sub(_visible, text)


def shortened(text: str, most: int = 256) -> str:
    """Return a text; of a longer one than `most` the beginning, an ellipsis and its length."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def cut(text: str, most: int) -> str:
    """Return a text of at most so many characters; a longer one ends with an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


_NO_HOST: Final = (
    "name or service not known", "nodename nor servname provided, or not known",
    "no address associated with hostname",
)  # fmt: skip
"""What resolvers of Linux and macOS say of a name that they don't know."""


def os_reason(error: BaseException) -> str:
    """Return why the system refused something, in the lower case of our messages: ``no such file or directory``."""
    words = (getattr(error, "strerror", None) or str(error)).lower()
    return "unknown host" if words in _NO_HOST else words


def byte_range(start: int, size: int) -> str:
    """Return ``bytes 30 to 33``, or ``byte 30``; of no bytes, where they would be."""
    return f"bytes {start:,} to {start + size - 1:,}" if size > 1 else f"byte {start:,}"


def counted(count: int, what: str, plural: str = "") -> str:
    """Return a count with its noun: ``1 row``, ``1,204 rows``; `plural` where that is not the noun and an s."""
    return f"{count:,} {what if count == 1 else plural or what + 's'}"


def duration(ns: int) -> str:
    """Format nanoseconds: ``812 µs``, ``2.0 ms``, ``1.250 s``."""
    if ns < 0:
        return f"-{duration(-ns)}"
    if ns < 1_000_000:
        return f"{ns // 1_000} µs"
    if ns < 1_000_000_000:
        return f"{ns / 1_000_000:.1f} ms"
    return f"{ns / 1_000_000_000:.3f} s"


def rough_duration(ns: int) -> str:
    """Format nanoseconds for a sentence: ``15 ms``, ``1.3 s``, ``45 s``, ``5 min``, ``15 min 40 s``."""
    if ns < 0:
        return f"-{rough_duration(-ns)}"
    milliseconds = round(ns / 1_000_000)
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    tenths = round(ns / 100_000_000)
    if tenths < 100:
        return f"{tenths // 10}.{tenths % 10} s" if tenths % 10 else f"{tenths // 10} s"
    minutes, seconds = divmod(round(ns / 1_000_000_000), 60)
    if minutes < 2:
        return f"{60 * minutes + seconds} s"
    return f"{minutes:,} min {seconds} s" if seconds else f"{minutes:,} min"


def size(count: int) -> str:
    """Format a count of bytes, in four characters or fewer where possible: ``142``, ``8.1k``, ``3.2M``."""
    if count < 1_000:
        return str(count)
    for unit, scale in (("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)):
        if count < scale * 1_000:
            return f"{count / scale:.1f}{unit}" if count < scale * 10 else f"{count // scale}{unit}"
    return f"{count // 1_000_000_000}G"


def byte_size(count: int) -> str:
    """Format a count of bytes with its unit: ``142 B``, ``8.1 kB``."""
    words = size(count)
    return f"{words} B" if words.isdecimal() else f"{words[:-1]} {words[-1]}B"


def endpoint_name(host: str, port: int) -> str:
    """An end of a connection as `host:port`, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def seconds(ns: int) -> str:
    """Format a time relative to the capture's first packet, in seconds with microseconds."""
    sign = "-" if ns < 0 else ""
    whole, rest = divmod(abs(ns), 1_000_000_000)
    return f"{sign}{whole}.{rest // 1_000:06d}"


BLOCKS: Final = " ▏▎▍▌▋▊▉█"


def bar(share: float, width: int) -> str:
    """Draw a bar of at most `width` cells. Any share above 0 is visible."""
    eighths = max(round(share * width * 8), 1 if share > 0 else 0)
    whole, rest = divmod(min(eighths, width * 8), 8)
    return ("█" * whole + (BLOCKS[rest] if rest else "")).ljust(width)

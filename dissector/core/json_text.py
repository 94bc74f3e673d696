"""Values of messages as JSON text: bytes as lower-case hex, and nothing that could act on a terminal.

Text that is not UTF-8 has its bytes as ``\\xNN``; integers beyond 64 bits stay integers.
"""

import math
import re
from typing import Any

import orjson

from dissector.core.text import HOSTILE


def dumps(value: Any, *, indented: bool = False) -> bytes:
    """Return a value of dicts, lists and field values as JSON, on one line or indented by two spaces."""
    option = orjson.OPT_INDENT_2 if indented else 0
    try:
        text = orjson.dumps(value, default=bytes.hex, option=option)
    except orjson.JSONEncodeError:
        # Lone surrogates stand for bytes that are not UTF-8, and damaged times may exceed 64 bits. Both are rare, so
        # values are checked only here.
        text = orjson.dumps(encodable(value), default=bytes.hex, option=option)
    return text if text.isascii() and b"\x7f" not in text else HOSTILE.sub(_escaped, text.decode()).encode()


def _escaped(match: re.Match[str]) -> str:
    """Return a hostile character as a JSON escape: the same value to a program, harmless to a terminal.

    Line feeds are those of the indentation: those of values are escaped already."""
    units = match.group().encode("utf-16-be")
    return (
        match.group()
        if match.group() == "\n"
        else "".join(f"\\u{units[n : n + 2].hex()}" for n in range(0, len(units), 2))
    )


def encodable(value: Any) -> Any:
    """Return the value with replacements for what the encoder refuses: lone surrogates, integers beyond 64 bits."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return orjson.Fragment(str(value))
    if isinstance(value, dict):
        return {encodable(name): encodable(inner) for name, inner in value.items()}
    return [encodable(inner) for inner in value] if isinstance(value, list) else value


def finite(value: Any) -> Any:
    """Return the value with numbers that are not finite as strings: JSON has none, and the encoder writes null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {name: finite(inner) for name, inner in value.items()}
    return [finite(inner) for inner in value] if isinstance(value, list) else value

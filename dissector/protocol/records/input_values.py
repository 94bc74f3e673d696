"""Reads fields of objects to encode, which come from JSON (bytes in hex) or from Python (bytes).

A value of the wrong type raises `EncodeError`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dissector.protocol.wire import EncodeError

Values = Mapping[str, Any]


def raw(values: Values, name: str) -> bytes | None:
    """Return bytes or None; None if the name is missing."""
    value = values.get(name)
    if value is None or isinstance(value, bytes):
        return value
    try:
        return bytes.fromhex(value)
    except (ValueError, TypeError):
        raise EncodeError(f"{value!r:.40} is not hex", name) from None


def integer(values: Values, name: str, default: int) -> int:
    """Return an integer; `default` if the name is missing."""
    value = values.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise EncodeError(f"{value!r:.40} is not an integer", name)
    return value


def structs(values: Values, name: str) -> Sequence[Values]:
    """Return a list of structures; empty if the name is missing."""
    value = values.get(name, ())
    if not isinstance(value, list | tuple) or not all(isinstance(each, Mapping) for each in value):
        raise EncodeError("is not a list of structures", name)
    return value


def with_bytes(values: Sequence[Values]) -> list[dict[str, Any]]:
    """Return records in the form of `to_json`, with keys and values as bytes, not hex."""
    return [_with_bytes(each) for each in values]


def _with_bytes(values: Values) -> dict[str, Any]:
    plain = {name: value for name, value in values.items() if not name.endswith("_decoded")}
    plain |= {name: raw(values, name) for name in ("key", "value") if name in values}
    if "headers" in values:
        plain["headers"] = [{**header, "value": raw(header, "value")} for header in structs(values, "headers")]
    return plain

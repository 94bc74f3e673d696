"""Records as text: on one line for lists, on many for reading, as JSON for programs.

Invariant: all text is clean, whatever a key, a value, a header or a name in them holds.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from dissector.core.json_text import dumps, encodable, finite
from dissector.core.text import clean, cut
from dissector.records.record import ExchangeRecord
from dissector.records.values.opened import BYTES, NULL, TEXT, OpenedValue
from dissector.records.values.trace_context import header_value

SHOWN: Final = 1000
"""Characters of a key, a value or a header on one line, at most."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NULL: Final = "null"


def place_text(record: ExchangeRecord) -> str:
    """``orders-0@17``: topic, partition and offset; ``@+3`` where the offset is counted in the batch of a Produce."""
    partition = "?" if record.partition is None else record.partition
    return f"{clean(record.topic) or '?'}-{partition}@{offset_text(record)}"


def offset_text(record: ExchangeRecord) -> str:
    """An offset; with a sign where it is counted in the batch of a Produce."""
    return f"+{record.offset}" if record.is_produced else str(record.offset)


def time_words(timestamp: int | None) -> str:
    """A timestamp in milliseconds, as ISO 8601; the number for one that no calendar has."""
    if timestamp is None:
        return "-"
    try:
        at = _EPOCH + timedelta(milliseconds=timestamp)
    except OverflowError:
        return str(timestamp)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def value_text(opened: OpenedValue, most: int = SHOWN) -> str:
    """A key or a value on one line: text as it is, structures as JSON, bytes as hex."""
    if opened.form == NULL:
        return _NULL
    if opened.form == TEXT:
        return shown(str(opened.value), most)
    if opened.form == BYTES:
        return _hex(opened.value, most)
    return shown(json_text(opened.value), most)


def json_text(value: object) -> str:
    """A value as JSON on one line."""
    return dumps(finite(value)).decode()


def headers_text(record: ExchangeRecord, most: int = SHOWN) -> str:
    """All headers on one line: ``tenant=shop, traceparent=00-…``."""
    return shown(", ".join(f"{name}={_header_text(name, content)}" for name, content in record.headers), most)


def _header_text(name: str, content: bytes | None) -> str:
    value = header_value(name, content)
    if value is None:
        return _NULL
    return value.hex() if isinstance(value, bytes) else str(value)


def shown(text: str, most: int = SHOWN) -> str:
    """Clean text of at most so many characters."""
    return clean(cut(text, most))


def _hex(value: object, most: int) -> str:
    assert isinstance(value, bytes)
    text = value[: most // 2].hex()
    return f"0x{text}" + ("…" if len(value) > most // 2 else "")


def pretty_text(opened: OpenedValue) -> str:
    """A structure as JSON of many lines, each clean; other values as they are, with their own line ends."""
    if opened.form == TEXT:
        return str(opened.value)
    if opened.form == BYTES:
        return ""
    if opened.form == NULL:
        return _NULL
    return dumps(finite(opened.value), indented=True).decode()


def record_object(record: ExchangeRecord) -> dict[str, Any]:
    """A record as an object for JSON."""
    found: dict[str, Any] = {
        "topic": record.topic, "partition": record.partition, "offset": record.offset, "timestamp": record.timestamp,
    } | _part("key", record.opened_key) | _part("value", record.opened_value)  # fmt: skip
    found["headers"] = [{"key": name, "value": header_value(name, content)} for name, content in record.headers]
    if record.is_control:
        found["control"] = True
    problems = [each.problem for each in (record.opened_key, record.opened_value) if each.problem is not None]
    if problems:
        found["findings"] = [
            {"code": each.code, "severity": each.severity.value, "message": each.message} for each in problems
        ]  # fmt: skip
    return found


def _part(name: str, opened: OpenedValue) -> dict[str, Any]:
    found: dict[str, Any] = {name: finite(opened.value)}
    if opened.form not in (NULL, TEXT):
        found[f"{name}_format"] = opened.form
    for what in ("schema", "envelope"):
        if getattr(opened, what):
            found[f"{name}_{what}"] = getattr(opened, what)
    return found


def cell_of(value: object) -> object:
    """A value of a field as the cell of a table."""
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, dict | list):
        return json_text(value)
    return encodable(value) if isinstance(value, str) else value

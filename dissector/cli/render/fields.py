"""`show --fields a,b,c`: a column for each field, for other programs.

A name is a row field, or a path in the object that `show --format json` prints: ``api_key``, ``latency_ns``,
``request.size``, ``response.body.topics.name`` (all values, joined by commas). ``request.topics.name`` is short for
``request.body.topics.name``. `info` is the info column, `findings` are codes. Values that the index has are printed
without decoding a frame.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import orjson

from dissector.capture_session import Capture
from dissector.cli.errors import UsageError
from dissector.core.arrays import Int64
from dissector.core.json_text import encodable
from dissector.core.suggestions import did_you_mean
from dissector.exchange.field_paths import SIDES, bodies, found, header_fields, leads, leads_into_bytes, paths
from dissector.exchange.model import Exchange
from dissector.exchange.row_fields import ROW_FIELDS, row_fields
from dissector.exchange.to_json import exchange_object
from dissector.export.table_cells import TableForm, as_csv, as_tabs, tab_lines

ROWS_PER_BATCH: Final = 1 << 14
"""Rows that are rendered together from columns of the index."""
PARTS: Final = ("time_ns", "size", "header", "body", "rest", "fetch_session")
"""Keys of a side of the JSON object."""


def parse(words: str) -> tuple[str, ...]:
    """Return the names of ``a,b,c``. Raises `UsageError` for an unknown name."""
    if not (words := words.rstrip(", ")):
        raise UsageError("--fields needs field names: conn,api,latency")
    names = tuple(word.strip() for word in words.split(","))
    for name in names:
        if name not in ROW_FIELDS and not _is_path(name):
            known = ", ".join(field.name for field in row_fields())
            hint = did_you_mean(name, (*ROW_FIELDS, *_near_paths(name))) or f"; there are {known}, and paths of fields"
            raise UsageError(f"--fields: unknown field {name!r}{hint}")
    return names


def index_lines(
    capture: Capture, names: Sequence[str], rows: range | Int64, form: TableForm = as_tabs
) -> Iterator[bytes]:
    """Render fields that the index has, many rows at once."""
    for first in range(0, len(rows), ROWS_PER_BATCH):
        some = rows[first : first + ROWS_PER_BATCH]
        cells = capture.index.cells(names, some) if form is as_tabs else None
        yield tab_lines(cells) if cells else form(capture.index.columns(names, some))


def exchange_lines(names: Sequence[str], exchanges: Iterable[Exchange], form: TableForm = as_tabs) -> Iterator[bytes]:
    """Render the fields of exchanges, one line for each."""
    return (form([[value] for value in _values(exchange, names)]) for exchange in exchanges)


def are_indexed(names: Sequence[str]) -> bool:
    """Return whether the index has all fields, so that no frame is decoded."""
    return all(name in ROW_FIELDS and ROW_FIELDS[name].is_indexed for name in names)


def header_line(names: Sequence[str]) -> bytes:
    """Return the names as the first line of CSV."""
    return as_csv([[name] for name in names])


def _values(exchange: Exchange, names: Sequence[str]) -> Iterator[object]:
    """Yield the fields of an exchange. The JSON object is made once, for paths that lead into embedded formats."""
    json_object: dict[str, Any] | None = None
    for name in names:
        if name in ROW_FIELDS:
            yield ROW_FIELDS[name].from_exchange(exchange)
        elif _leads_into_bytes(name):
            json_object = exchange_object(exchange) if json_object is None else json_object
            yield _joined(json_object.get(_side(name)), _path(name))
        else:
            yield _joined(_message_object(exchange, name), _path(name))


def _side(name: str) -> str:
    return name.partition(".")[0]


def _path(name: str) -> list[str]:
    """Return the path within a side."""
    _, *path = name.split(".")
    return path if path[0] in PARTS else ["body", *path]


def _leads_into_bytes(name: str) -> bool:
    """Return whether only the JSON object has the path."""
    first, *rest = _path(name)
    return first == "fetch_session" or leads_into_bytes(rest)


def _message_object(exchange: Exchange, name: str) -> object:
    message = exchange.request if _side(name) == "request" else exchange.response
    if message is None or (exchange.fields.kind != "exchange" and not exchange.is_stored):
        return None
    return {"header": message.header, "body": message.known_body, "rest": message.rest or None}


def _joined(value: object, path: Sequence[str]) -> str | None:
    """Return all values at a path, joined by commas; None if there are none."""
    words = [_word(each) for each in found(value, path) if each is not None]
    return ",".join(words) if words else None


def _word(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return orjson.dumps(encodable(value), default=bytes.hex).decode()
    return str(value)


def _is_path(name: str) -> bool:
    """Return whether a path exists in some message; in embedded formats any path may."""
    side, *path = name.split(".")
    if side not in SIDES or not path:
        return False
    first, *rest = _path(name)
    if first == "header":
        return not rest or (len(rest) == 1 and rest[0] in _header_names(side))
    if first != "body":
        return first == "fetch_session" or not rest
    return not rest or any(leads(fields, rest) for fields in bodies(side))


def _header_names(side: str) -> set[str]:
    return {field.snake_name for field in header_fields(side)}


def _near_paths(name: str) -> Iterator[str]:
    """Yield all paths of a name's side."""
    side = _side(name)
    if side not in SIDES or "." not in name:
        return
    yield from (f"{side}.{part}" for part in PARTS)
    yield from (f"{side}.header.{each}" for each in _header_names(side))
    body = f"{side}.body" if _path(name) == name.split(".")[1:] else side
    for fields in bodies(side):
        yield from paths(body, fields)

"""`show --fields a,b,c`: a column a field, for other programs to read.

A name is a path in the object that `show --format json` prints: ``api_key``, ``latency_ns``, ``request.size``,
``response.body.topics.name`` (any of them, joined by commas). ``request.topics.name`` means the body too. `info` is
the words of the list, `findings` are the codes. What the index has is printed without decoding a frame.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache
from itertools import chain
from typing import Any, Final

import orjson

from dissector.capture_session import Capture
from dissector.cli.errors import UsageError
from dissector.core.arrays import Int64
from dissector.core.json_text import encodable
from dissector.core.text import clean
from dissector.exchange.field_paths import SIDES, bodies, found, header_fields, leads, leads_into_bytes, paths
from dissector.exchange.model import Exchange
from dissector.exchange.row_fields import ROW_FIELDS, row_fields
from dissector.exchange.to_json import exchange_object

TOGETHER: Final = 1 << 14
"""Rows that are printed at once where the index has them."""
PARTS: Final = ("time_ns", "size", "header", "body", "rest", "fetch_session")
"""What a side of the JSON object has."""
TABLE: Final = (
    "number", "time_ns", "connection", "kind", "api", "api_version", "correlation_id", "request.size", "response.size",
    "latency_ns", "client_id", "info",
)  # fmt: skip
"""The columns of the list, with values for programs."""


def parse(words: str) -> tuple[str, ...]:
    """The names of ``a,b,c``. Raises `UsageError` for an unknown one."""
    names = tuple(word.strip() for word in words.split(","))
    for name in names:
        if name not in ROW_FIELDS and not _is_path(name):
            near = get_close_matches(name, dict.fromkeys((*ROW_FIELDS, *_near_paths(name))), n=3)
            known = ", ".join(field.name for field in row_fields())
            hint = f"did you mean {', '.join(near)}" if near else f"there are {known}, and paths of fields"
            raise UsageError(f"--fields: unknown field {name!r}; {hint}")
    return names


def index_lines(capture: Capture, names: Sequence[str], rows: range | Int64, *, as_csv: bool) -> Iterator[bytes]:
    """The fields of rows that the index has, many rows at once: parted by tabs, or as CSV."""
    form = _as_csv if as_csv else _as_tabs
    for first in range(0, len(rows), TOGETHER):
        yield form(capture.columns(names, rows[first : first + TOGETHER]))


def exchange_lines(names: Sequence[str], exchanges: Iterable[Exchange], *, as_csv: bool) -> Iterator[bytes]:
    """The fields of exchanges, a line each."""
    form = _as_csv if as_csv else _as_tabs
    return (form([[value] for value in _values(exchange, names)]) for exchange in exchanges)


def are_indexed(names: Sequence[str]) -> bool:
    """Whether no frame need be decoded for them."""
    return all(name in ROW_FIELDS and ROW_FIELDS[name].is_indexed for name in names)


def header_line(names: Sequence[str]) -> bytes:
    """The names as the first line of CSV."""
    return _as_csv([[name] for name in names])


def _as_tabs(columns: Sequence[Sequence[object]]) -> bytes:
    """All rows by one format: half the time of a row at a time."""
    cells = [*map(_cells, columns)]
    line = "\t".join("%d" if column is given else "%s" for column, given in zip(cells, columns, strict=True)) + "\n"
    return (line * len(columns[0]) % tuple(chain.from_iterable(zip(*cells, strict=True)))).encode()


def _as_csv(columns: Sequence[Sequence[object]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(zip(*map(_cells, columns), strict=True))
    return out.getvalue().encode()


def _cells(column: Sequence[object]) -> Sequence[object]:
    """A column's values, each as one cell has it: the column itself where all are numbers."""
    return column if set(map(type, column)) == {int} else [*map(_text, column)]


def _text(value: object) -> str:
    """A value in one cell, harmless to a terminal."""
    if isinstance(value, int):
        return str(value)
    return "" if value is None else _clean(str(value))


_clean = lru_cache(maxsize=1024)(clean)


def _values(exchange: Exchange, names: Sequence[str]) -> Iterator[object]:
    """The fields of an exchange; the JSON object is made once, where a path leads into what bytes hold."""
    opened: dict[str, Any] | None = None
    for name in names:
        if name in ROW_FIELDS:
            yield ROW_FIELDS[name].from_exchange(exchange)
        elif _leads_into_bytes(name):
            opened = exchange_object(exchange) if opened is None else opened
            yield _joined(opened.get(_side(name)), _path(name))
        else:
            yield _joined(_plain(exchange, name), _path(name))


def _side(name: str) -> str:
    return name.partition(".")[0]


def _path(name: str) -> list[str]:
    """The path inside of a side."""
    _, *path = name.split(".")
    return path if path[0] in PARTS else ["body", *path]


def _leads_into_bytes(name: str) -> bool:
    """Whether a path is found in the whole JSON object alone."""
    first, *rest = _path(name)
    return first == "fetch_session" or leads_into_bytes(rest)


def _plain(exchange: Exchange, name: str) -> object:
    message = exchange.request if _side(name) == "request" else exchange.response
    if message is None or (exchange.fields.kind != "exchange" and not exchange.is_stored):
        return None
    return {"header": message.header, "body": message.body, "rest": message.rest or None}


def _joined(value: object, path: Sequence[str]) -> str | None:
    """What stands at a path, all of it."""
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
    """Whether a path may lead somewhere: in some message as far as fields go, anywhere in what bytes hold."""
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
    """All paths of the side that a name is about."""
    side = _side(name)
    if side not in SIDES or "." not in name:
        return
    yield from (f"{side}.{part}" for part in PARTS)
    yield from (f"{side}.header.{each}" for each in _header_names(side))
    body = f"{side}.body" if _path(name) == name.split(".")[1:] else side
    for fields in bodies(side):
        yield from paths(body, fields)

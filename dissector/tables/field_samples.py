"""The bytes of fields in a sample of the rows of tables (`analysis.stats.field_bytes`): equal shapes are measured once.

Invariant: what is measured of a message is `paths_of` the message.
"""

import re
from typing import Any, Final, NamedTuple

import numpy as np
import orjson

from dissector.analysis.stats.field_bytes import SAMPLE_SIZE, FieldBytes, MessageKind, MessageSample, Paths, paths_of
from dissector.core.grouping import cuts
from dissector.exchange.field_paths import SIDES
from dissector.exchange.field_sizes import field_sizes
from dissector.exchange.from_json import REQUEST, RESPONSE
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.frame import response_layout_to_write
from dissector.protocol.message_layout import PREFIX, request_layout
from dissector.protocol.wire import EncodeError
from dissector.tables.database import Database
from dissector.tables.packing import as_sent
from dissector.tables.reader import BODIES, Tables
from dissector.tables.row_to_exchange import messages_of_row
from dissector.tables.sql import same

_PLAIN: Final = {"time_ns", "size", "header", "body", "fetch_session"}
_DIGITS: Final = str.maketrans("123456789", "000000000")
_CORRELATION: Final = re.compile(r'"correlation_id":-?[0-9]+')
_BEFORE: Final = '^[^}]*?"correlation_id":-?[0-9]+'
"""What a stored message has up to its correlation id: times, its size, and what is the same for all of a kind."""
_TEXTS_TOGETHER: Final = 1 << 24
"""Bytes of messages that are read together: DuckDB holds whole results, and some copies of what is in them."""
_SAMPLED_BODIES: Final = f"FROM sampled m JOIN bodies b ON {same('m', 'b')}"
_UNKNOWN_TAGS: Final = '"unknown_tagged_fields":'
"""Their tags are numbers whose digits say how many bytes they take."""


def sample_fields(tables: Tables, found: FieldBytes) -> None:
    """Add the messages of `measured`, and the bytes of the fields of a sample of them."""
    apis = "api_key, api_version"
    for row in tables.database.rows(
        f"SELECT {apis}, count(CASE WHEN sent > 0 THEN 1 END) AS requests, sum(sent) AS sent,"
        f" count(CASE WHEN back > 0 THEN 1 END) AS responses, sum(back) AS back FROM measured WHERE api_key IS NOT NULL"
        f" GROUP BY {apis} ORDER BY {apis}"
    ):
        for side, count, size in ((REQUEST, "requests", "sent"), (RESPONSE, "responses", "back")):
            if row[count]:
                kind = MessageKind(row["api_key"], row["api_version"], side)
                found.kinds[kind] = MessageSample(int(row[count]), int(row[size]))
    place = f"row_number() OVER (PARTITION BY {apis} ORDER BY md5(concat_ws('/', capture, packet, start)))"
    tables.database.define(
        "sampled", f"SELECT * FROM measured WHERE api_key IS NOT NULL QUALIFY {place} <= {SAMPLE_SIZE}", kept=True
    )
    left: list[int] = []
    for shape in _shapes(tables.database):
        for kind, paths in shape.paths.items():
            found.of(kind).add_traced(sum(paths.values()), paths, len(shape.numbers))
        if not shape.paths:
            left += shape.numbers
    if left:
        _decode(tables.database, left, found)


def _decode(database: Database, numbers: list[int], found: FieldBytes) -> None:
    """Add the bytes of the fields of rows of the sample as their bytes have them."""
    listed, bodies = ", ".join(map(str, numbers)), ", ".join(f"b.{name}" for name in BODIES)
    rows = f"SELECT m.*, {bodies} {_SAMPLED_BODIES} WHERE number IN ({listed})"
    for row in database.rows(f"{rows} ORDER BY number"):
        messages = messages_of_row(row)
        for side, message in ((REQUEST, messages.request), (RESPONSE, messages.response)):
            if message is not None:
                kind = MessageKind(row["api_key"], row["api_version"], side)
                found.of(kind).add_traced(message.size, paths_of(message))


class _Shape(NamedTuple):
    """Rows of a sample whose messages differ in their correlation ids only."""

    paths: dict[MessageKind, Paths]
    """The bytes of the fields of a request and a response; none if they must be decoded."""
    numbers: list[int]


def _shapes(database: Database) -> list[_Shape]:
    """Return the rows of the sample by shape, in the order of their first rows."""
    hashes = ", ".join(f"hash(regexp_replace(b.{side}, '{_BEFORE}', ''))" for side in SIDES)
    size = " + ".join(f"coalesce(strlen(b.{side}), 0)" for side in SIDES)
    of_keys: dict[tuple[object, ...], list[int]] = {}
    sizes: dict[int, int] = {}
    for row in database.rows(
        f"SELECT m.number, api_key, api_version, {hashes}, {size} AS size {_SAMPLED_BODIES} ORDER BY m.number"
    ):
        number, *key, sizes[row["number"]] = row.values()
        of_keys.setdefault(tuple(key), []).append(number)
    firsts = [numbers[0] for numbers in of_keys.values()]
    known: dict[tuple[object, ...], Paths | None] = {}
    found: list[_Shape] = []
    for some in np.split(firsts, cuts(np.array([sizes[number] for number in firsts], np.int64), _TEXTS_TOGETHER)):
        listed = ", ".join(map(str, some.tolist()))
        for row in database.rows(
            f"SELECT m.number, api_key, api_version, {', '.join(f'b.{side}' for side in SIDES)} {_SAMPLED_BODIES}"
            f" WHERE m.number IN ({listed or 'NULL'}) ORDER BY m.number"
        ):
            kinds = {MessageKind(row["api_key"], row["api_version"], side): row[side] for side in SIDES if row[side]}
            found.append(_Shape(_measured_all(kinds, known), []))
    return [shape._replace(numbers=numbers) for shape, numbers in zip(found, of_keys.values(), strict=True)]


def _measured_all(
    messages: dict[MessageKind, str], known: dict[tuple[object, ...], Paths | None]
) -> dict[MessageKind, Paths]:
    """Return the bytes of the fields of stored messages; nothing if one must be decoded."""
    found = {kind: _paths(kind, text, known) for kind, text in messages.items()}
    whole = {kind: paths for kind, paths in found.items() if paths is not None}
    return whole if len(whole) == len(found) else {}


def _paths(kind: MessageKind, text: str, known: dict[tuple[object, ...], Paths | None]) -> Paths | None:
    """Return the bytes of the fields of a stored message; None for one that must be decoded."""
    shape = _CORRELATION.sub("", text[text.find('"header":') :], 1)
    key = kind, shape if _UNKNOWN_TAGS in shape else shape.translate(_DIGITS)
    if key not in known:
        known[key] = _measured(kind, orjson.loads(text))
    return known[key]


def _measured(kind: MessageKind, message: dict[str, Any]) -> Paths | None:
    is_request = kind.side == REQUEST
    layout = (
        request_layout(kind.api_key, kind.version) if is_request
        else response_layout_to_write(kind.api_key, kind.version, message["body"])
    )  # fmt: skip
    if layout.header is None or layout.body is None or not message.keys() <= _PLAIN:
        return None
    body = message["body"]
    try:
        if body and layout.body in RECORDS_FIELDS:
            body = as_sent(body, layout.body)
        sizes = field_sizes(
            (layout.header, layout.header_version, message["header"]), (layout.body, layout.body_version, body)
        )
    except EncodeError:
        return None
    found = {"size": PREFIX} | sizes
    return found if sum(found.values()) == message["size"] else None

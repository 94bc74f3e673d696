"""The bytes of fields in a sample of the rows of tables (`analysis.stats.field_bytes`): equal shapes are measured once.

Invariant: what is measured of a message is `paths_of` the message.
"""

import re
from typing import Any, Final

import orjson

from dissector.analysis.stats.field_bytes import SAMPLE_SIZE, FieldBytes, MessageKind, MessageSample, Paths, paths_of
from dissector.exchange.field_paths import SIDES
from dissector.exchange.field_sizes import field_sizes
from dissector.exchange.from_json import REQUEST, RESPONSE
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.frame import response_layout_to_write
from dissector.protocol.message_layout import PREFIX, request_layout
from dissector.protocol.wire import EncodeError
from dissector.tables.database import booleans
from dissector.tables.packing import as_sent
from dissector.tables.reader import Tables

_PLAIN: Final = {"time_ns", "size", "header", "body", "fetch_session"}
_DIGITS: Final = str.maketrans("123456789", "000000000")
_CORRELATION: Final = re.compile(r'"correlation_id":-?[0-9]+')
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
    sample = f"SELECT number FROM (SELECT number, {place} AS nth FROM measured) AS placed WHERE nth <= {SAMPLE_SIZE}"
    known: dict[tuple[object, ...], Paths | None] = {}
    for part in tables.parts_where(f"number IN ({sample}) AND api_key IS NOT NULL"):
        left: list[bool] = []
        for batch in tables.with_bodies(part, "number, api_key, api_version, b.request, b.response"):
            for row in batch.to_pylist():
                kinds = {side: MessageKind(row["api_key"], row["api_version"], side) for side in SIDES if row[side]}
                paths = {kind: _paths(kind, row[kind.side], known) for kind in kinds.values()}
                left.append(None in paths.values())
                for kind, each in paths.items():
                    if each is not None and not left[-1]:
                        found.of(kind).add_traced(sum(each.values()), each)
        for exchange in tables.decoded(part.filter(booleans(left))):
            api = exchange.api_key or 0, exchange.fields.version or 0
            for side, message in ((REQUEST, exchange.request), (RESPONSE, exchange.response)):
                if message is not None:
                    found.of(MessageKind(*api, side)).add_traced(message.size, paths_of(message))


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

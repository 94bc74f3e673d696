"""JSON of messages for cells of tables, without contents that are not kept or do not fit into a cell.

Invariant: content that does not fit gives a finding; it is never dropped silently.
"""

from typing import Any, Final, NamedTuple

from dissector.core.json_text import dumps
from dissector.exchange.field_paths import replaced
from dissector.exchange.to_json import PARTIAL_BYTES
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.tables.packing import BYTES

MAX_BYTES: Final = 16 << 20
"""Maximum bytes of a cell's JSON. A VARIANT can be larger, but none of its strings can, and readers must hold it."""
CONTENTS: Final = frozenset(
    ("records", "messages", "compressed", "data", "key", "key_decoded", "value", "value_decoded", "headers")
)
"""Fields of a batch with its records."""
RECORDS_ALONE: Final = "its records are only in the table of records"
NOT_KEPT: Final = "it is left out"
Body = dict[str, Any]


class CellJson(NamedTuple):
    """JSON, and what did not fit into it; empty if everything did."""

    json: bytes
    lost: str


def message_cell(message: Body, name: str | None, *, records: bool) -> CellJson:
    """Return the cell of a request or response, given as an object; `name` is its name in the schema."""
    content = message if records else _without_records(message, name)
    json = dumps(content)
    if len(json) <= MAX_BYTES:
        return CellJson(json, "")
    json = dumps(_without_records(message, name))
    if len(json) <= MAX_BYTES:
        return CellJson(json, RECORDS_ALONE)
    without_body = {"time_ns": message["time_ns"], "size": message["size"], "header": None, "body": None}
    return CellJson(dumps(without_body), NOT_KEPT)


def entry_cell(entry: Body, *, records: bool) -> CellJson:
    """Return the cell of a row of another kind, such as a batch of a log with its records."""
    json = dumps(entry if records else without_contents(entry))
    return CellJson(json, "") if len(json) <= MAX_BYTES else CellJson(dumps(without_contents(entry)), RECORDS_ALONE)


def _without_records(message: Body, name: str | None) -> Body:
    if name not in RECORDS_FIELDS or not message["body"]:
        return message
    without = {"body": replaced(message["body"], RECORDS_FIELDS[name].split("."), _field_without_records)}
    return message | without | ({PARTIAL_BYTES: "", "rest": ""} if PARTIAL_BYTES in message else {})


def _field_without_records(field: Body | None) -> Body | None:
    """Return a `records` field without its records. Of bytes that are not a batch, the size remains."""
    return field and {
        name: [without_contents(batch) for batch in value] if name == "batches"
        else without_contents(value) if isinstance(value, dict) else value
        for name, value in field.items() if name != BYTES
    }  # fmt: skip


def without_contents(batch: Body) -> Body:
    """Return a batch or a message without its contents."""
    return {name: value for name, value in batch.items() if name not in CONTENTS}

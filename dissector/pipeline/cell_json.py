"""JSON of messages for cells of tables: without contents that are not to be kept, or that do not fit into a cell.

Invariant: content that does not fit gives a finding, it is never dropped silently.
"""

from typing import Any, Final, NamedTuple

from dissector.core.json_text import dumps
from dissector.pipeline.packing import BYTES
from dissector.protocol.embedded.topics import RECORDS_FIELDS

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


def of_message(said: Body, name: str | None, *, records: bool) -> CellJson:
    """Return the cell of a request or response, given as a JSON object; `name` is its name in the schema."""
    whole = said if records else _without_records(said, name)
    json = dumps(whole)
    if len(json) <= MAX_BYTES:
        return CellJson(json, "")
    json = dumps(_without_records(said, name))
    if len(json) <= MAX_BYTES:
        return CellJson(json, RECORDS_ALONE)
    return CellJson(dumps({"time_ns": said["time_ns"], "size": said["size"], "header": None, "body": None}), NOT_KEPT)


def of_entry(entry: Body, *, records: bool) -> CellJson:
    """Return the cell of other kinds of rows, such as a batch of a log with its records."""
    json = dumps(entry if records else without_contents(entry))
    return CellJson(json, "") if len(json) <= MAX_BYTES else CellJson(dumps(without_contents(entry)), RECORDS_ALONE)


def _without_records(said: Body, name: str | None) -> Body:
    if name not in RECORDS_FIELDS or not said["body"]:
        return said
    return said | {"body": _without_records_at(said["body"], RECORDS_FIELDS[name].split("."))}


def _without_records_at(value: Any, path: list[str]) -> Any:
    """Return a copy of a body without the records in the field at `path`."""
    if isinstance(value, list):
        return [_without_records_at(each, path) for each in value]
    if not path:
        return value if value is None else _of_field(value)
    return value | {path[0]: _without_records_at(value[path[0]], path[1:])} if value and path[0] in value else value


def _of_field(field: Body) -> Body:
    """Return a `records` field without its records. Of bytes that are no batch the size remains."""
    return {
        name: [without_contents(batch) for batch in value] if name == "batches"
        else without_contents(value) if isinstance(value, dict) else value
        for name, value in field.items() if name != BYTES
    }  # fmt: skip


def without_contents(batch: Body) -> Body:
    """Return a batch or a message without its contents."""
    return {name: value for name, value in batch.items() if name not in CONTENTS}

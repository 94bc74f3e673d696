"""Messages as JSON for a cell: without what the tables are not to keep, and without what a cell can't hold.

Invariant: what is left out because it has no room is told, never silent.
"""

from typing import Any, Final, NamedTuple

from dissector.core.json_text import dumps
from dissector.pipeline.packing import BYTES
from dissector.protocol.embedded.topics import RECORDS_FIELDS

MAX_BYTES: Final = 16 << 20
"""Bytes of a cell's JSON. A VARIANT can take more, but none of its strings, and what reads tables has to hold it."""
CONTENTS: Final = frozenset(
    ("records", "messages", "compressed", "data", "key", "key_decoded", "value", "value_decoded", "headers")
)
"""What of a batch is its records."""
RECORDS_ALONE: Final = "its records are in the table of records alone"
NOT_KEPT: Final = "it is left out"
Body = dict[str, Any]


class CellJson(NamedTuple):
    """JSON, and what is not in it for want of room: empty where all is."""

    json: bytes
    lost: str


def of_message(said: Body, name: str | None, *, records: bool) -> CellJson:
    """A request or a response, as JSON has it; `name` is the message's in the schema."""
    whole = said if records else _without_records(said, name)
    json = dumps(whole)
    if len(json) <= MAX_BYTES:
        return CellJson(json, "")
    json = dumps(_without_records(said, name))
    if len(json) <= MAX_BYTES:
        return CellJson(json, RECORDS_ALONE)
    return CellJson(dumps({"time_ns": said["time_ns"], "size": said["size"], "header": None, "body": None}), NOT_KEPT)


def of_entry(entry: Body, *, records: bool) -> CellJson:
    """What other rows have; of a batch of a log, its records."""
    json = dumps(entry if records else without_contents(entry))
    return CellJson(json, "") if len(json) <= MAX_BYTES else CellJson(dumps(without_contents(entry)), RECORDS_ALONE)


def _without_records(said: Body, name: str | None) -> Body:
    if name not in RECORDS_FIELDS or not said["body"]:
        return said
    return said | {"body": _without_records_at(said["body"], RECORDS_FIELDS[name].split("."))}


def _without_records_at(value: Any, path: list[str]) -> Any:
    """A copy of a body, the field at the path without what its batches hold."""
    if isinstance(value, list):
        return [_without_records_at(each, path) for each in value]
    if not path:
        return value if value is None else _of_field(value)
    return value | {path[0]: _without_records_at(value[path[0]], path[1:])} if value and path[0] in value else value


def _of_field(field: Body) -> Body:
    """A `records` field: of what is no batch the size is left."""
    return {
        name: [without_contents(batch) for batch in value] if name == "batches"
        else without_contents(value) if isinstance(value, dict) else value
        for name, value in field.items() if name != BYTES
    }  # fmt: skip


def without_contents(batch: Body) -> Body:
    """A batch or a message without what it holds."""
    return {name: value for name, value in batch.items() if name not in CONTENTS}

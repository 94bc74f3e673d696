"""Envelopes that data are often in, named by their fields."""

from typing import Final

from dissector.records.values.opened import PAYLOAD

_CONNECT: Final = frozenset(("schema", PAYLOAD))
_DEBEZIUM: Final = frozenset(("before", "after", "source", "op"))
_CLOUD_EVENT: Final = frozenset(("specversion", "id", "source", "type"))
OPERATIONS: Final = {
    "c": "create", "u": "update", "d": "delete", "r": "read", "t": "truncate", "m": "message",
}  # fmt: skip
"""Debezium's operations by their letter."""


def envelope(value: object) -> str:
    """Return the name of the envelope that a value is; empty for any other value. `Connect` is what Kafka Connect's
    JSON converter writes: a schema beside the payload, which may be Debezium's."""
    if not isinstance(value, dict):
        return ""
    names = value.keys()
    if len(names) == 2 and names == _CONNECT and isinstance(value["schema"], dict | None):
        inner = envelope(value[PAYLOAD])
        return f"Connect, {inner}" if inner else "Connect"
    if names >= _DEBEZIUM and isinstance(value["op"], str):
        return f"Debezium {OPERATIONS.get(value['op'], value['op'][:16])}"
    return "CloudEvents" if names >= _CLOUD_EVENT else ""

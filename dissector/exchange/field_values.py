"""The value of a field by its path in the tree: what `show --format json` has there.

Tree and values have the same names, with three exceptions. Batches of a `records` field are its elements in the tree
and its ``batches`` in values. What ``metadata`` holds is its ``decoded`` in the tree and ``metadata_decoded`` beside it
in values. Names in parentheses are parts that only the wire has.
"""

import re
from typing import Any, Final

from dissector.exchange.model import ExchangeMessage

ABSENT: Final = object()
"""There is no such value."""
_SELF: Final = ("compressed", "value")
"""Parts of the wire that have the value of the field that they are part of."""
_WIRE: Final = re.compile(r"\.\((?:compressed|value)\)")
_INDEX: Final = re.compile(r"\.?\[\d+\]")
_RECORDS: Final = re.compile(r"\.(records|unaligned_records)\[\d+\]")
_STEP: Final = re.compile(r"\[(\d+)\]|\(([^)]*)\)|([^.\[\]()]+)")


def value_at(message: ExchangeMessage, path: str) -> Any:
    """The value at a path such as ``body.topics[0].name``, of the whole message where it is empty. `ABSENT` for what
    the wire alone has (a length, bytes that no field explains) and for fields of what bytes hold."""
    value: Any = {"header": message.header, "body": message.decoded_body}
    holder: Any = ABSENT
    """Of the value, by the name before: what its bytes hold is beside it."""
    before = ""
    for index, wire, name in _STEP.findall(path):
        if wire in _SELF:
            continue
        if index:
            value = _element(value, int(index))
        elif isinstance(value, bytes | str):
            decoded = _member(holder, f"{before}_decoded")
            value = decoded if name == "decoded" else _member(decoded, name)
        else:
            holder, before = value, name
            value = _member(value, name) if name else ABSENT
    return value


def plain_path(path: str) -> str:
    """Return a path in the tree as filters have it: without element numbers and parts that only the wire has.

    ``request.body.topic_data[0].records[1].(compressed).records[2].key`` is
    ``request.body.topic_data.records.batches.records.key``."""
    plain = _RECORDS.sub(r".\1.batches", _WIRE.sub("", path), count=1)
    return _INDEX.sub("", plain).replace(".decoded", "_decoded")


def _element(value: Any, index: int) -> Any:
    elements = value.get("batches") if isinstance(value, dict) else value
    return elements[index] if isinstance(elements, list) and index < len(elements) else ABSENT


def _member(value: Any, name: str) -> Any:
    return value.get(name, ABSENT) if isinstance(value, dict) else ABSENT

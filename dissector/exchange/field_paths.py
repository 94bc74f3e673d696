"""Paths into messages: which there are, by the schema tables, and the values at one.

A path is the names on the way into the JSON object of a message's body, Kafka's in snake_case; elements of arrays have
none. Paths lead on into record batches, and into what bytes fields hold (``metadata_decoded``), as far as formats are
known by tables.

A field of the tree has the names of its value in `show --format json`, with three exceptions (`value_at`). Batches of a
`records` field are its elements in the tree and its ``batches`` in values. What ``metadata`` holds is its ``decoded``
in the tree and ``metadata_decoded`` beside it in values. Names in parentheses are parts that only the wire has.

Invariant: every path of plain fields is a place; every place leads somewhere in some version of its message.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from dissector.exchange.model import ExchangeMessage
from dissector.protocol.embedded.formats import FORMATS
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.schema.loader import apis, may_have_field, message
from dissector.protocol.schema.model import Api, Field, Versions

SIDES: Final = ("request", "response")
RECORDS: Final = frozenset(path.rpartition(".")[2] for path in RECORDS_FIELDS.values())
DECODED: Final = "_decoded"
STRUCT: Final = "struct"
BATCH, INDEX = "batch", "index"
"""Entries of Kafka's own files, by the kind of their rows: their values are in the body of the request."""
Path = tuple[str, ...]
ABSENT: Final = object()
"""There is no such value."""
_SELF: Final = ("compressed", "value")
"""Parts of the wire that have the value of the field that they are part of."""
_WIRE: Final = re.compile(r"\.\((?:compressed|value)\)")
_ELEMENT: Final = re.compile(r"\.?\[\d+\]")
_RECORDS: Final = re.compile(r"\.(records|unaligned_records)\[\d+\]")
_STEP: Final = re.compile(r"\[(\d+)\]|\(([^)]*)\)|([^.\[\]()]+)")


class FieldPlace(NamedTuple):
    """A field of a message: `path` leads there, `called` is what a person may call it: all of it, or its end.

    `type` is Kafka's, of an array that of its elements, or ``struct``. `opened`: the path leads into bytes, so that the
    plain body does not have it.
    """

    side: str
    message: str
    api_key: int | None
    path: Path
    called: Path
    type: str
    versions: Versions
    field: Field | None = None
    is_array: bool = False
    opened: bool = False


_ALL: Final = Versions(0, 32_767)
_BATCH: Final = {
    "base_offset": "int64", "batch_length": "int32", "partition_leader_epoch": "int32", "magic": "int8",
    "crc": "uint32", "crc_valid": "bool", "attributes": "int16", "compression": "string", "timestamp_type": "string",
    "transactional": "bool", "control": "bool", "last_offset_delta": "int32", "base_timestamp": "int64",
    "max_timestamp": "int64", "producer_id": "int64", "producer_epoch": "int16", "base_sequence": "int32",
    "records_count": "int32", "error": "string", "masked": "int32",
}  # fmt: skip
_RECORD: Final = {"offset": "int64", "timestamp": "int64", "key": "bytes", "value": "bytes"}
_LEGACY: Final = {
    "message_size": "int32", "crc": "int32", "crc_valid": "bool", "magic": "int8", "attributes": "int8",
    "compression": "string", "timestamp_type": "string",
} | _RECORD  # fmt: skip
_HEADERS: Final = {"headers": STRUCT, "headers.key": "string", "headers.value": "bytes"}
_INDEX: Final = {"relative_offset": "int32", "timestamp": "int64", "position": "int32"}


def bodies(side: str) -> Iterator[tuple[Field, ...]]:
    """The fields of each message of a side; a table is read when its turn comes."""
    return (message(_message(side, each)).fields for each in apis())


def header_fields(side: str) -> tuple[Field, ...]:
    """The fields of a side's header."""
    return message(f"{side.capitalize()}Header").fields


def leads(fields: tuple[Field, ...], path: Sequence[str]) -> bool:
    """Return whether a path from these fields may exist; in what bytes hold, any may."""
    first, *rest = path
    if first.endswith(DECODED):
        return any(field.snake_name == first.removesuffix(DECODED) for field in fields)
    if first == "unknown_tagged_fields":
        return True
    found = next((field for field in fields if field.snake_name == first), None)
    if found is None:
        return False
    return not rest or first in RECORDS or leads(found.fields, rest)


def paths(above: str, fields: tuple[Field, ...]) -> Iterator[str]:
    """All paths of plain fields, with dots, each behind `above`."""
    for field in fields:
        path = f"{above}.{field.snake_name}"
        yield path
        yield from paths(path, field.fields)


def leads_into_bytes(path: Sequence[str]) -> bool:
    """Return whether only a body with decoded bytes fields has the path."""
    return any(each in RECORDS or each.endswith(DECODED) for each in path)


def found(value: object, path: Sequence[str]) -> list[object]:
    """Return all values at a path, null included; a missing field has none."""
    values: list[object] = []
    _find(value, path, 0, values)
    return values


def _find(value: object, path: Sequence[str], at: int, values: list[object]) -> None:
    if isinstance(value, list):
        for each in value:
            _find(each, path, at, values)
    elif at == len(path):
        values.append(value)
    elif isinstance(value, dict) and path[at] in value:
        _find(value[path[at]], path, at + 1, values)


def replaced(value: Any, path: Sequence[str], convert: Callable[[Any], Any]) -> Any:
    """Return a copy of a body in which all values at a path are converted."""
    if isinstance(value, list):
        return [replaced(each, path, convert) for each in value]
    if not path:
        return convert(value)
    if isinstance(value, dict) and path[0] in value:
        return value | {path[0]: replaced(value[path[0]], path[1:], convert)}
    return value


def holds(value: object, path: Sequence[str], at: int = 0) -> bool:
    """Return whether there is a field at a path that is not null. An empty array counts."""
    if at == len(path):
        return value is not None and not (isinstance(value, list) and value and all(each is None for each in value))
    if isinstance(value, list):
        return any(holds(each, path, at) for each in value)
    return isinstance(value, dict) and holds(value.get(path[at]), path, at + 1)


@cache
def places(side: str) -> tuple[FieldPlace, ...]:
    """Return all fields of the bodies of a side; those of Kafka's own files are with the requests."""
    found = (place for each in apis() for place in _in_message(side, each))
    return (*found, *_stored()) if side == "request" else tuple(found)


@cache
def places_named(side: str, name: str) -> tuple[FieldPlace, ...]:
    """Return those of `places` of which the last name is `name`; messages without such a field are not read."""
    field = name.removesuffix(DECODED)
    some = (
        each for each in apis() if _message(side, each) in RECORDS_FIELDS or may_have_field(_message(side, each), field)
    )
    found = (place for each in some for place in _in_message(side, each))
    every = (*found, *_stored()) if side == "request" else found
    return tuple(place for place in every if place.called[-1] == name)


def _message(side: str, api: Api) -> str:
    return api.request if side == "request" else api.response


@cache
def _in_message(side: str, api: Api) -> tuple[FieldPlace, ...]:
    name = _message(side, api)
    return tuple(_within(FieldPlace(side, name, api.key, (), (), STRUCT, api.versions), message(name).fields))


def _within(above: FieldPlace, fields: tuple[Field, ...]) -> Iterator[FieldPlace]:
    """The places of a struct's fields, and what is in them."""
    for field in fields:
        path = (*above.path, field.snake_name)
        kind = STRUCT if field.fields else field.element_type
        versions = field.versions.intersect(above.versions)
        place = above._replace(
            path=path, called=path, type=kind, versions=versions, field=field, is_array=field.is_array
        )
        yield place
        if ".".join(path) in FORMATS.get(above.message, ()) or (kind == "uuid" and field.snake_name == "topic_id"):
            name = (*above.path, field.snake_name + DECODED)
            decoded = "string" if kind == "uuid" else STRUCT
            yield place._replace(path=name, called=name, type=decoded, field=None, is_array=False, opened=True)
        if RECORDS_FIELDS.get(above.message) == ".".join(path):
            yield from _of_records(place)
        yield from _within(place, field.fields)


def _of_records(above: FieldPlace) -> Iterator[FieldPlace]:
    """What a `records` field holds: batches with records, or messages of before 0.11, by themselves or wrapped. Of
    these, what a record has too goes by the name that it has in a batch, also."""
    yield _inner(above, ("size",), "int32")
    yield _inner(above, ("truncated",), STRUCT)
    yield _inner(above, ("truncated", "size"), "int32")
    yield _inner(above, ("batches",), STRUCT, is_array=True)
    yield from _of_batch(above, ("batches",))


def _of_batch(above: FieldPlace, to: Path) -> Iterator[FieldPlace]:
    inside = (*to, "records")
    for name, kind in _BATCH.items():
        yield _inner(above, (*to, name), kind)
    yield _inner(above, inside, STRUCT, is_array=True)
    for name, kind in (_RECORD | _HEADERS).items():
        yield _inner(above, (*inside, *name.split(".")), kind)
    for name in ("key", "value"):
        yield _inner(above, (*inside, name + DECODED), STRUCT)
    for wrapper in (to, (*to, "messages")):
        for name, kind in _LEGACY.items():
            if name not in _BATCH or wrapper != to:
                yield _inner(above, (*wrapper, name), kind)
            if name in _RECORD:
                yield _inner(above, (*wrapper, name), kind, called=(*inside, name))


def _inner(above: FieldPlace, to: Path, kind: str, *, called: Path | None = None, is_array: bool = False) -> FieldPlace:
    return above._replace(
        path=(*above.path, *to), called=(*above.called, *(called or to)), type=kind, field=None, is_array=is_array,
        opened=above.api_key is not None,
    )  # fmt: skip


def _stored() -> Iterator[FieldPlace]:
    """Entries of Kafka's own files, which no frame surrounds. A batch goes by the names that it has in a frame, too."""
    entry = FieldPlace("request", BATCH, None, (), (), STRUCT, _ALL)
    for place in _of_batch(entry, ()):
        yield place._replace(called=("records", "batches", *place.called))
    yield _inner(entry, ("position",), "int64")
    for name, kind in _INDEX.items():
        yield _inner(entry._replace(message=INDEX), (name,), kind)


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
    return _ELEMENT.sub("", plain).replace(".decoded", "_decoded")


def _element(value: Any, index: int) -> Any:
    elements = value.get("batches") if isinstance(value, dict) else value
    return elements[index] if isinstance(elements, list) and index < len(elements) else ABSENT


def _member(value: Any, name: str) -> Any:
    return value.get(name, ABSENT) if isinstance(value, dict) else ABSENT

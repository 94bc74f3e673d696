"""The values of a response in the layout of another version.

Fields that the version lacks go, and fields that the recorded one lacks have their defaults; names and ids of topics
stand for each other. What later versions have at another place (the coordinators of several keys, the offsets of
several groups) is brought to the later place, and back.
"""

from collections.abc import Mapping
from typing import Any, Final

from dissector.protocol.codec.plan import ArrayPlan, FieldPlan, StructPlan, TypePlan
from dissector.protocol.message import Values
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.field_names import TOPIC_NAMES
from dissector.recorded_server.entities import Names

_MOVED: Final[Mapping[int, str]] = {ApiKey.FIND_COORDINATOR: "coordinators", ApiKey.OFFSET_FETCH: "groups"}
"""The array whose elements have what earlier versions have once, at the top."""


def as_latest(key: int, asked: Values, answered: Values) -> Values:
    """Return a response with its contents where later versions have them."""
    if key == ApiKey.FIND_COORDINATOR and "coordinators" not in answered:
        return {**answered, "coordinators": [{"key": asked.get("key"), **answered}]}
    if key == ApiKey.OFFSET_FETCH and "groups" not in answered:
        return {**answered, "groups": [{"group_id": asked.get("group_id"), **answered}]}
    return answered


def as_earliest(key: int, answered: Values) -> Values:
    """Return a response with its contents where earlier versions have them, too."""
    within = _MOVED.get(key)
    elements = answered.get(within) if within else None
    return {**elements[0], **answered} if elements else answered


def in_layout(of: StructPlan, values: Mapping[str, Any], ids: Names, names: Names) -> Values:
    """Return values with the fields of a layout that are there, or can be known; `ids` are those of topics by name, and
    `names` the reverse."""
    found: Values = {}
    for field in (*of.fields, *of.tagged):
        value = values.get(field.name) if field.name in values else _other_name(field, values, ids, names)
        if value is None and not (field.name in values and _may_be_null(field.type)):
            continue
        found[field.name] = _value(field.type, value, ids, names)
    return found


def _value(of: TypePlan, value: Any, ids: Names, names: Names) -> Any:
    if isinstance(of, StructPlan) and isinstance(value, Mapping):
        return in_layout(of, value, ids, names)
    if isinstance(of, ArrayPlan) and isinstance(value, list) and isinstance(of.element, StructPlan):
        return [in_layout(of.element, each, ids, names) for each in value]
    return value


def _other_name(field: FieldPlan, values: Mapping[str, Any], ids: Names, names: Names) -> Any:
    if field.name == "topic_id":
        return ids.get(next((str(values[name]) for name in TOPIC_NAMES if values.get(name)), ""))
    if field.name in TOPIC_NAMES:
        known = next((values[name] for name in TOPIC_NAMES if values.get(name)), None)
        return known or names.get(str(values.get("topic_id")))
    if field.name == "old_style_offsets":  # ListOffsets version 0
        offset = values.get("offset")
        return [offset] if isinstance(offset, int) and offset >= 0 else []
    return None


def _may_be_null(of: TypePlan) -> bool:
    return bool(getattr(of, "nullable", False))

"""The JSON of Apache's converters, as the plain values that a reader gives for the same message.

Every name of the JSON must belong to a field that the plan has in that place, and every untagged field of the plan must
be in the JSON: so values that are equal to these miss nothing and add nothing. A field goes by the name of its release:
the schema keeps names of older releases as aliases.
"""

from base64 import b64decode
from typing import Any

from dissector.protocol.codec.plan import ArrayPlan, FieldPlan, ScalarPlan, StructPlan, TypePlan, VariablePlan
from dissector.protocol.codec.reader import UNKNOWN_TAGS
from dissector.protocol.schema.model import camel_name


def values_of(plan: TypePlan, truth: Any) -> Any:
    """The value that `truth` is, in the layout of `plan`."""
    if truth is None:
        return None
    match plan:
        case ScalarPlan():
            return float(truth) if plan.type == "float64" else truth  # JSON has NaN and infinities as text
        case VariablePlan():
            return _variable(plan, truth)
        case ArrayPlan():
            return [values_of(plan.element, each) for each in truth]
        case StructPlan():
            return _struct(plan, truth)


def _variable(plan: VariablePlan, truth: Any) -> str | bytes:
    if plan.type == "string":
        assert isinstance(truth, str)
        return truth
    return b64decode(truth["bytes"]) if plan.type == "records" else b64decode(truth)


def _struct(plan: StructPlan, truth: dict[str, Any]) -> dict[str, Any]:
    left = dict(truth)
    values = {field.name: values_of(field.type, left.pop(_name(field, left))) for field in plan.fields}
    for field in plan.tagged:
        if (name := _name(field, left)) in left:  # Apache leaves out a tagged field at its default, there and here
            values[field.name] = values_of(field.type, left.pop(name))
    unknown = [{"tag": each["tag"], "data": b64decode(each["data"])} for each in left.pop("unknownTaggedFields", ())]
    assert not left, f"{plan.name} has no field {', '.join(left)}"
    return values | ({UNKNOWN_TAGS: unknown} if unknown else {})


def _name(field: FieldPlan, truth: dict[str, Any]) -> str:
    """What the release that made the JSON calls a field."""
    names = (field.schema.camel_name, *map(camel_name, field.schema.aliases))
    return next((name for name in names if name in truth), names[0])

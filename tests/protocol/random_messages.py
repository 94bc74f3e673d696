"""Messages made from a plan: random values, and the bytes that Kafka's rules give them.

An encoder of its own, from the protocol guide and KIP-482, that shares nothing with the readers but the plan: what it
writes is the truth that they are held against.
"""

import random
import struct

from dissector.protocol.codec.plan import ArrayPlan, FieldPlan, ScalarPlan, StructPlan, TypePlan, VariablePlan
from dissector.protocol.wire import uuid_text

RANGES = {
    "int8": (-(2**7), 2**7 - 1), "int16": (-(2**15), 2**15 - 1), "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1), "uint32": (0, 2**32 - 1), "int64": (-(2**63), 2**63 - 1),
}  # fmt: skip
WORDS = ("", "orders", "ünïcödé ✓ 漢字", "x" * 300, "\x1b[2J", "a\x00b")
Made = tuple[object, bytes]


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def make(plan: StructPlan, chance: random.Random) -> tuple[dict[str, object], bytes]:
    """Values of a message and their bytes."""
    values, raw = _struct(plan, chance)
    assert isinstance(values, dict)
    return values, raw


def _value(plan: TypePlan, chance: random.Random) -> Made:
    match plan:
        case ScalarPlan():
            return _scalar(plan, chance)
        case VariablePlan():
            return _variable(plan, chance)
        case ArrayPlan():
            return _array(plan, chance)
        case StructPlan():
            if not plan.nullable:
                return _struct(plan, chance)
            if chance.random() < 0.3:
                return None, b"\xff"
            values, raw = _struct(plan, chance)
            return values, b"\x01" + raw


def _scalar(plan: ScalarPlan, chance: random.Random) -> Made:
    if plan.type == "bool":
        flag = chance.random() < 0.5
        return flag, bytes([flag])
    if plan.type == "float64":
        number = chance.choice((0.0, 1.5, -2.25e300, float("inf")))
        return number, struct.pack(">d", number)
    if plan.type == "uuid":
        raw = chance.randbytes(16)
        return uuid_text(raw), raw
    low, high = RANGES[plan.type]
    value = chance.choice((low, high, 0, chance.randint(low, high)))
    return value, value.to_bytes(plan.size, "big", signed=low < 0)


def _length(count: int, *, compact: bool, width: int) -> bytes:
    return uvarint(count + 1) if compact else count.to_bytes(width, "big", signed=True)


def _variable(plan: VariablePlan, chance: random.Random) -> Made:
    width = 2 if plan.type == "string" else 4
    if plan.nullable and chance.random() < 0.2:
        return None, _length(-1, compact=plan.compact, width=width)
    if plan.type == "string":
        text = chance.choice(WORDS)
        raw = text.encode()
        return text, _length(len(raw), compact=plan.compact, width=2) + raw
    raw = chance.randbytes(chance.choice((0, 1, 5, 200)))
    return raw, _length(len(raw), compact=plan.compact, width=4) + raw


def _array(plan: ArrayPlan, chance: random.Random) -> Made:
    if plan.nullable and chance.random() < 0.2:
        return None, _length(-1, compact=plan.compact, width=4)
    count = chance.choice((0, 1, 2, 3))
    if isinstance(plan.element, ScalarPlan) and chance.random() < 0.1:
        count = 150
    made = [_value(plan.element, chance) for _ in range(count)]
    raw = b"".join(part for _, part in made)
    return [value for value, _ in made], _length(count, compact=plan.compact, width=4) + raw


def _struct(plan: StructPlan, chance: random.Random) -> Made:
    values: dict[str, object] = {}
    raw = b""
    for field in plan.fields:
        values[field.name], part = _value(field.type, chance)
        raw += part
    if not plan.flexible:
        return values, raw
    tagged = sorted((f for f in plan.tagged if chance.random() < 0.5), key=lambda f: f.tag or 0)
    parts = []
    for field in tagged:
        values[field.name], part = _tagged(field, chance)
        parts.append(uvarint(field.tag or 0) + uvarint(len(part)) + part)
    if chance.random() < 0.2:
        data = chance.randbytes(chance.choice((0, 3, 130)))
        values["unknown_tagged_fields"] = [{"tag": 9999, "data": data}]
        parts.append(uvarint(9999) + uvarint(len(data)) + data)
    return values, raw + uvarint(len(parts)) + b"".join(parts)


def _tagged(field: FieldPlan, chance: random.Random) -> Made:
    if isinstance(field.type, StructPlan) and field.type.nullable:
        if chance.random() < 0.3:
            return None, b"\x00"
        values, raw = _struct(field.type, chance)
        return values, b"\x01" + raw
    return _value(field.type, chance)

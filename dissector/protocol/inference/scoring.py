"""Scores how well bytes fit a layout, in bits: the length of the bytes in a code made for usual values of the fields.

The right layout makes a frame cheap (error codes are 0, strings are names, counts fit); a wrong one reads lengths as
strings, which is expensive. As all layouts score the same bytes, a difference of n bits means odds of 2^n to 1.

Invariants:
  * only numbers are built from the bytes, and an impossible layout is dropped at the first field that shows it;
  * at most `STEPS` fields are scored. For a longer frame the rest is extrapolated, and whether the layout ends where
    the frame ends is checked by the reader, once, for layouts that still may win.
"""

import struct
from collections.abc import Set
from typing import Final, NamedTuple

from dissector.protocol.codec.plan import (
    ArrayPlan,
    FieldPlan,
    ScalarPlan,
    StructPlan,
    TypePlan,
    VariablePlan,
    plan,
)
from dissector.protocol.inference.number_costs import ABSURD, NUMBERS, Bits, bits_of, plain
from dissector.protocol.wire import WireError, uuid_text, uvarint

STEPS: Final = 600
"""The most fields that are scored."""
LONGEST_VARINT: Final = 5
LONGEST_CHARACTER: Final = 4
LONGEST_LOOK: Final = 4096
"""The most bytes of a value that are scored."""
KNOWN_WORD: Final = 8.0
"""The cost of a name or id that occurs elsewhere in the capture."""
RECORDS_GAIN: Final = 60.0
"""The discount of bytes that begin like a record batch, of which eight bytes are determined."""
MAGIC_AT: Final = 16
_NAMELIKE: Final = bytes(range(0x30, 0x3A)) + bytes(range(0x61, 0x7B)) + bytes(range(0x41, 0x5B)) + b"._-"
_PRINTABLE: Final = bytes(range(0x20, 0x7F))


_NO_NUMBERS: Final = frozenset(("uuid", "float64"))
_Number = tuple[struct.Struct, int, Bits]
"""Layout, size and costs of a number."""


class _Prepared(NamedTuple):
    """The fields of a structure in a message, with what their numbers need."""

    fields: tuple[tuple[FieldPlan, _Number | None], ...]
    plan: StructPlan
    """Held, as its id is the key."""


_FIELDS: Final[dict[tuple[str, int], _Prepared]] = {}
_MOST_PREPARED: Final = 16_384


def _prepared(message: str, plan: StructPlan) -> _Prepared:
    if len(_FIELDS) >= _MOST_PREPARED:
        _FIELDS.clear()
    found = _Prepared(tuple((field, _number_of(message, field)) for field in plan.fields), plan)
    _FIELDS[message, id(plan)] = found
    return found


def _number_of(message: str, field: FieldPlan) -> _Number | None:
    kind = field.type
    if not isinstance(kind, ScalarPlan) or kind.type in _NO_NUMBERS:
        return None
    layout = NUMBERS[kind.type]
    return layout, layout.size, bits_of(message, field.name, kind.type, layout.size)


class LayoutMismatchError(Exception):
    """The bytes don't fit: a length runs past the end, or the cost exceeds its limit."""


class InconclusiveError(Exception):
    """The limit of fields was reached, or the end of the captured bytes."""


class Scorer:
    """Scores messages from `at` to `end`; `data` may end earlier, if the rest was not captured."""

    def __init__(self, data: bytes, at: int, end: int, most: float, words: Set[str]) -> None:
        self._data = data
        self._whole = min(len(data), end)
        self._end = end
        self._most = most
        self._words = words
        self._message = ""
        self._steps = STEPS
        self.at = at
        self.bits = 0.0

    def message(self, plan: StructPlan) -> None:
        """Score a header or a body. Raises `LayoutMismatchError` or `InconclusiveError`."""
        self._message = plan.name
        try:
            self._struct(plan)
        except WireError as error:
            cut_off = self._whole < self._end and error.at + LONGEST_VARINT > self._whole
            raise (InconclusiveError if cut_off else LayoutMismatchError) from None

    def _pay(self, bits: float) -> None:
        self.bits += bits
        if self.bits > self._most:
            raise LayoutMismatchError("costs more than another layout")

    def _step(self, size: int) -> int:
        """Advance by `size` bytes; return the offset of the first."""
        at = self.at
        if at + size > self._end:
            raise LayoutMismatchError("runs past the end")
        self._steps -= 1
        if at + size > self._whole or self._steps < 0:
            raise InconclusiveError
        self.at = at + size
        return at

    def _uvarint(self) -> int:
        at = self._step(1)
        value = self._data[at]
        if value > 0x7F:  # nearly all are one byte long
            value, self.at = uvarint(self._data, at)
        return value

    def _length(self, plan: VariablePlan | ArrayPlan, kind: str) -> int:
        """Read a length or count; -1 is null, if that is allowed."""
        if plan.compact:
            size = self._uvarint() - 1
        else:
            layout = NUMBERS[kind]
            size = layout.unpack_from(self._data, self._step(layout.size))[0]
        if size < -1 or (size < 0 and not plan.nullable):
            raise LayoutMismatchError("a length below 0")
        return size

    def _struct(self, plan: StructPlan) -> None:
        for field, number in (_FIELDS.get((self._message, id(plan))) or _prepared(self._message, plan)).fields:
            if number is None:
                self._value(field.type, field)
            else:
                self._number(*number)
        if plan.flexible:
            count = self._uvarint()
            self._pay(0.1 if not count else 6.0 + count)
            for _ in range(count):
                self._tagged(plan)

    def _tagged(self, plan: StructPlan) -> None:
        tag, size = self._uvarint(), self._uvarint()
        stop = self.at + size
        if stop > self._end:
            raise LayoutMismatchError("tagged field runs past the end")
        field = next((f for f in plan.tagged if f.tag == tag), None)
        if field is None:
            self.at = stop
            self._pay(ABSURD + 8.0 * size)
            return
        if isinstance(field.type, StructPlan):
            if not field.type.nullable or self._uvarint():
                self._struct(field.type)
        else:
            self._value(field.type, field)
        if self.at != stop:
            raise LayoutMismatchError("tagged field of another size")

    def _value(self, plan: TypePlan, field: FieldPlan) -> None:
        match plan:
            case ScalarPlan():
                self._scalar(plan, field)
            case VariablePlan():
                self._variable(plan)
            case ArrayPlan():
                self._array(plan, field)
            case StructPlan():
                if plan.nullable:
                    present = self._data[self._step(1)]
                    self._pay(1.0 if present in (1, 255) else ABSURD)
                    if present > 127:
                        return
                self._struct(plan)

    def _number(self, layout: struct.Struct, size: int, bits: Bits) -> None:
        """Score a number: most of all fields, so `_step` and `_pay` are written out."""
        at = self.at
        stop = self.at = at + size
        if stop > self._end:
            raise LayoutMismatchError("runs past the end")
        self._steps -= 1
        if stop > self._whole or self._steps < 0:
            self.at = at
            raise InconclusiveError
        self.bits += bits(layout.unpack_from(self._data, at)[0])
        if self.bits > self._most:
            raise LayoutMismatchError("costs more than another layout")

    def _scalar(self, plan: ScalarPlan, field: FieldPlan) -> None:
        kind = plan.type
        layout = NUMBERS[kind]
        if kind not in _NO_NUMBERS:
            self._number(layout, layout.size, bits_of(self._message, field.name, kind, layout.size))
            return
        value = layout.unpack_from(self._data, self._step(layout.size))[0]
        if kind == "uuid":
            self._pay(self._uuid(value))
        else:
            self._pay(50.0 if abs(value) < 1e15 and (not value or abs(value) > 1e-15) else 64 + ABSURD)

    def _uuid(self, raw: bytes) -> float:
        if uuid_text(raw) in self._words:
            return KNOWN_WORD
        if raw[6] >> 4 == 4 and raw[8] >> 6 == 2:
            return 122.0
        return 12.0 if not any(raw) else 20.0 if not any(raw[:15]) else 128 + ABSURD

    def _variable(self, plan: VariablePlan) -> None:
        size = self._length(plan, "int16" if plan.type == "string" else "int32")
        if size <= 0:
            self._pay(3.0)
            return
        start, stop = self.at, self.at + size
        if stop > self._end:
            raise LayoutMismatchError("length runs past the end")
        self._pay(plain(size, 4))
        self.at = stop
        raw = self._data[start : min(stop, self._whole, start + LONGEST_LOOK)]
        self._pay(8.0 * (size - len(raw)) + self._content(plan.type, raw, size))
        if stop > self._whole:
            raise InconclusiveError

    def _content(self, kind: str, raw: bytes, size: int) -> float:
        if kind == "string":
            return self._text(raw)
        if kind == "records" and len(raw) > MAGIC_AT:
            batch = int.from_bytes(raw[8:12], "big", signed=True)
            good = raw[MAGIC_AT] <= 2 and raw[0] < 0x80 and 0 < batch < 1 << 30
            return 8.0 * len(raw) + (-RECORDS_GAIN if good else ABSURD)
        return 2.0 + min(self._text(raw), 8.2 * len(raw) - 6.2 * raw.count(0))

    def _text(self, raw: bytes) -> float:
        strange = raw.translate(None, _NAMELIKE)
        if not strange:
            return min(5.5 * len(raw), KNOWN_WORD if raw.decode() in self._words else 1e9)
        bits = 5.5 * (len(raw) - len(strange))
        unprintable = strange.translate(None, _PRINTABLE)
        bits += 7.0 * (len(strange) - len(unprintable))
        if unprintable:
            try:
                raw.decode()
            except UnicodeDecodeError as error:
                if error.start < len(raw) - LONGEST_CHARACTER:  # else it may only be cut off
                    bits += ABSURD
            bits += sum(24.0 if byte < 0x80 else 8.0 for byte in unprintable)
        return bits

    def _array(self, plan: ArrayPlan, field: FieldPlan) -> None:
        count = self._length(plan, "int32")
        self._pay(plain(count, 4))
        if count > self._end - self.at:
            raise LayoutMismatchError("count runs past the end")
        for _ in range(count):
            self._step(0)  # elements may have no bytes at all
            self._value(plan.element, field)


BEGIN: Final = 4
RATE: Final = 6.0
"""Bits per byte that a body may cost; random bytes cost 8."""
START: Final = 16.0
"""Bits that it may cost in addition: short bodies vary more."""
MOST_REST: Final = 24
"""Bytes that may follow the newest known layout, as new fields."""


def reads_as(data: bytes, header: str, header_version: int, body: str, version: int) -> bool:
    """Return whether a frame fits that version of a message, with at most `MOST_REST` bytes behind it."""
    end = len(data)
    start = Scorer(data, BEGIN, end, RATE * end + 100, frozenset())
    try:
        start.message(plan(header, header_version))
        scorer = Scorer(data, start.at, end, RATE * (end - start.at) + START, frozenset())
        scorer.message(plan(body, version))
    except (LayoutMismatchError, InconclusiveError):
        return False
    return end - scorer.at <= MOST_REST

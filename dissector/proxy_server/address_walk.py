"""Finds the addresses in a response whose bytes come in pieces, without a copy of what lies before and between them.

A generator follows the plan of the layout, and pauses where bytes are missing: records are passed over by their size.

Invariants:
  * the places that are found are those that `reader` would read the same values from (a property test);
  * any cutting of the bytes into pieces gives the same result;
  * damage raises `WireError`, and no byte behind the frame is asked for.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from dissector.protocol.codec.plan import (
    STRUCTS,
    ArrayPlan,
    FieldPlan,
    ScalarPlan,
    StructPlan,
    TypePlan,
    VariablePlan,
    least_size,
    plan,
)
from dissector.protocol.message_layout import PREFIX, response_layout
from dissector.protocol.wire import WireError, uvarint
from dissector.proxy_server.address_fields import AddressFields, Path

Pause = Iterator[None]
_MOST_VARINT: Final = 5


class FoundAddress(NamedTuple):
    """An address, and where it stands in the frame."""

    node: int
    kind: str | int
    """What the field of the kind says; empty for a broker."""
    host: str | None
    host_start: int
    """Of its length."""
    host_end: int
    host_plan: VariablePlan
    port: int
    port_start: int
    port_plan: ScalarPlan


class TagPlace(NamedTuple):
    """A tagged field with addresses: where its tag, its size and its value begin, and its size."""

    tag_start: int
    size_start: int
    value_start: int
    size: int


class AddressWalk:
    """One response. `done` says that no address follows what was fed."""

    def __init__(self, api_key: int, version: int, size: int, places: tuple[AddressFields, ...]) -> None:
        """`size` is that of the frame, its prefix included."""
        self.found: list[FoundAddress] = []
        self.tag: TagPlace | None = None
        self.array_start: int | None = None
        """Where the array of a structure that is last begins, if it is no tagged field."""
        self.done = False
        self.at = PREFIX
        """How far it came; behind what was fed where it passes over something."""
        self._places = {place.path: place for place in places}
        self._names = {name for place in places for name in ("host", "port", place.node, place.kind)}
        self._values: dict[str, str | int | None] = {}
        self._spans: dict[str, tuple[int, int, TypePlan]] = {}
        self._end = size
        self._data = bytearray()
        self._base = 0
        """Offset in the frame of the first byte of `_data`."""
        layout = response_layout(api_key, version, b"")
        assert layout.header is not None
        assert layout.body is not None
        self._steps = self._frame(plan(layout.header, layout.header_version), plan(layout.body, layout.body_version))

    def feed(self, piece: bytes) -> None:
        """Take the next bytes of the frame, from its size on. Raises `WireError`."""
        if self.done:
            return
        received = self._base + len(self._data)
        if self.at >= received + len(piece):  # nothing of it is looked at
            self._data.clear()
            self._base = received + len(piece)
            return
        del self._data[: self.at - self._base]
        self._data += piece[max(0, self.at - received) :]
        self._base = self.at
        try:
            next(self._steps)
        except StopIteration:
            self.done = True

    def _frame(self, header: StructPlan, body: StructPlan) -> Pause:
        yield from self._struct(header, ("",))
        if () in self._places and any(field.name == "host" for field in body.fields):
            yield from self._struct(body, ())
            return
        first = {path[0]: place for path, place in self._places.items() if path}
        in_tags = any(field.name in first for field in body.tagged)
        count = max((number for number, field in enumerate(body.fields, 1) if field.name in first), default=0)
        for field in body.fields if in_tags else body.fields[:count]:
            if field.name in first and first[field.name].last:
                self.array_start = self.at
            yield from self._field(field, ())
        if in_tags:
            yield from self._tags(body, ())

    def _wait(self, size: int) -> Pause:
        """Wait until so many bytes are there from `at` on."""
        if self.at + size > self._end:
            raise WireError("runs past the end of the frame", self.at)
        while self.at + size > self._base + len(self._data):
            yield

    def _pass(self, size: int) -> None:
        if size < 0 or self.at + size > self._end:
            raise WireError("length runs past the end of the frame", self.at)
        self.at += size

    def _uvarint(self) -> Pause:
        """Read one into `_number`."""
        size = 1
        while True:
            yield from self._wait(size)
            start = self.at - self._base
            if self._data[start + size - 1] < 0x80 or size == _MOST_VARINT:
                self._number, after = uvarint(bytes(self._data[start : start + size]), 0)
                self.at += after
                return
            size += 1

    def _length(self, plan: VariablePlan | ArrayPlan) -> Pause:
        """Read a length or a count into `_number`; -1 for null."""
        if plan.compact:
            yield from self._uvarint()
            self._number -= 1
            return
        code, width = ("h", 2) if isinstance(plan, VariablePlan) and plan.type == "string" else ("i", 4)
        yield from self._wait(width)
        kind = STRUCTS["int16" if code == "h" else "int32"]
        self._number = kind.unpack_from(self._data, self.at - self._base)[0]
        self.at += width

    def _field(self, field: FieldPlan, path: Path) -> Pause:
        start = self.at
        if field.name in self._names and not isinstance(field.type, ArrayPlan | StructPlan):
            yield from self._kept(field)
            self._spans[field.name] = (start, self.at, field.type)
        else:
            yield from self._value(field.type, (*path, field.name))

    def _kept(self, field: FieldPlan) -> Pause:
        """Read a number or a text, and keep it."""
        kind = field.type
        if isinstance(kind, ScalarPlan):
            yield from self._wait(kind.size)
            self._values[field.name] = STRUCTS[kind.type].unpack_from(self._data, self.at - self._base)[0]
            self.at += kind.size
        elif isinstance(kind, VariablePlan):
            yield from self._length(kind)
            size = self._number
            if size < 0:
                self._values[field.name] = None
                return
            yield from self._wait(size)
            start = self.at - self._base
            self._values[field.name] = bytes(self._data[start : start + size]).decode("utf-8", "surrogateescape")
            self.at += size

    def _value(self, plan: TypePlan, path: Path) -> Pause:
        if isinstance(plan, ScalarPlan):
            self._pass(plan.size)
        elif isinstance(plan, VariablePlan):
            yield from self._length(plan)
            self._pass(max(0, self._number))
        elif isinstance(plan, ArrayPlan):
            yield from self._array(plan, path)
        elif plan.nullable:
            yield from self._wait(1)
            self.at += 1
            if self._data[self.at - 1 - self._base] < 0x80:
                yield from self._struct(plan, path)
        else:
            yield from self._struct(plan, path)

    def _array(self, plan: ArrayPlan, path: Path) -> Pause:
        yield from self._length(plan)
        count = max(0, self._number)
        if count * max(1, least_size(plan.element)) > self._end - self.at:
            raise WireError("count runs past the end of the frame", self.at)
        if isinstance(plan.element, ScalarPlan):
            return self._pass(count * plan.element.size)
        for _ in range(count):
            yield from self._value(plan.element, path)

    def _struct(self, plan: StructPlan, path: Path) -> Pause:
        for field in plan.fields:
            yield from self._field(field, path)
        place = self._places.get(path)
        if place is not None and "host" in self._spans:
            self._keep(place)
        if plan.flexible:
            yield from self._tags(plan, path)

    def _tags(self, plan: StructPlan, path: Path) -> Pause:
        known = {field.tag: field for field in plan.tagged if (*path, field.name) in self._places}
        yield from self._uvarint()
        for _ in range(self._number):
            tag_start = self.at
            yield from self._uvarint()
            field, size_start = known.get(self._number), self.at
            yield from self._uvarint()
            if field is None:
                self._pass(self._number)
                continue
            self.tag = TagPlace(tag_start, size_start, self.at, self._number)
            yield from self._value(field.type, (*path, field.name))
            if self.at != self.tag.value_start + self.tag.size:
                raise WireError("tagged field of another size", self.at)

    def _keep(self, place: AddressFields) -> None:
        host_start, host_end, host_plan = self._spans.pop("host")
        port_start, _, port_plan = self._spans.pop("port")
        host, port, node = self._values["host"], self._values["port"], self._values[place.node]
        assert isinstance(host_plan, VariablePlan)
        assert isinstance(port_plan, ScalarPlan)
        assert not isinstance(host, int)
        assert isinstance(port, int)
        assert isinstance(node, int)
        kind = self._values.get(place.kind) if place.kind else None
        self.found.append(
            FoundAddress(node, kind or "", host, host_start, host_end, host_plan, port, port_start, port_plan)
        )

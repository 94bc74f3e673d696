"""Which other layout a message has that does not fit its own: another version of its API, another header version, other
lengths, no tagged fields, a size that counts itself. What fits to the last byte names the sender's mistake.

Invariants:
  * a reading ends where the frame ends, and its texts and error codes are such: a short body fits by chance otherwise;
  * one change is tried before two; of the first number of changes that fits, at most `MOST` readings are returned;
  * work is bounded: frames up to `LONGEST` bytes, `STEPS` fields each. The caller bounds how many messages are tried.
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
    plan,
)
from dissector.protocol.message_layout import PREFIX, MessageLayout
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.headers import request_header_version, response_header_version
from dissector.protocol.schema.loader import api
from dissector.protocol.wire import WireError, is_printable, uvarint

MOST: Final = 3
"""Readings that are named."""
LONGEST: Final = 1 << 16
STEPS: Final = 20_000
_ERRORS: Final = frozenset(map(int, ErrorCode))
_ERROR_FIELD: Final = "error_code"
REQUEST_HEADER: Final = "RequestHeader"
_HEADERS: Final = {REQUEST_HEADER: (0, 1, 2), "ResponseHeader": (0, 1)}


class Coding(NamedTuple):
    """How lengths and tagged fields are written."""

    compact: bool | None
    """Whether lengths are varints; None if they are where the version has them so."""
    tags: bool
    """Whether the message ends with tagged fields."""
    inner_tags: bool
    """Whether its inner structures do."""
    adds_one: bool = True
    """Whether a compact length is one more than what it counts."""
    any_null: bool = False
    """Whether there may be null where the version has none."""


class ExactReading(NamedTuple):
    """A layout, and how it differs from that of the message."""

    header_version: int
    version: int
    coding: Coding
    surplus: int = 0
    """Bytes that the size counts too many, or too few if below 0."""
    words: str = ""


class _Own(NamedTuple):
    """The layout that the message should have."""

    header: str
    header_version: int
    body: str
    version: int
    key: int


def exact_readings(data: bytes, size: int, layout: MessageLayout, key: int) -> tuple[ExactReading, ...]:
    """Return the layouts that a frame has to its last byte, those that are nearest to its own; none if nothing fits, or
    too much does. The frame had `size` bytes by its prefix, and `data` of them are there."""
    if api(key) is None or layout.header is None or layout.body is None or len(data) > LONGEST:
        return ()
    own = _Own(layout.header, layout.header_version, layout.body, layout.body_version, key)
    for group in _changes(own, size - len(data)):
        found = [each for each in group if _fits(data, own.header, own.body, each)]
        if found:
            return _distinct(found, own)
    return ()


def fits(data: bytes, layout: MessageLayout, reading: ExactReading) -> bool:
    """Return whether a frame has a layout to its last byte."""
    if layout.header is None or layout.body is None:
        return False
    return _fits(data, layout.header, layout.body, reading)


def _fits(data: bytes, header_name: str, body_name: str, reading: ExactReading) -> bool:
    walker = _Walker(data[: len(data) - max(0, reading.surplus)])
    header, body = plan(header_name, reading.header_version), plan(body_name, reading.version)
    try:
        walker.struct(header, _plain(header), is_inner=False)
        walker.struct(body, reading.coding, is_inner=False)
    except (WireError, IndexError):
        return False
    return walker.at == walker.end


def _plain(layout: StructPlan) -> Coding:
    """How a version writes what it has."""
    return Coding(None, layout.flexible, layout.flexible)


def _distinct(found: list[ExactReading], own: _Own) -> tuple[ExactReading, ...]:
    """Return readings of different layouts, versions with the same layout as one; none if there are too many."""
    by_layout: dict[tuple[object, ...], list[ExactReading]] = {}
    for each in found:
        body = plan(own.body, each.version)
        by_layout.setdefault((each.header_version, each.surplus, body.fields, each.coding), []).append(each)
    groups = [min(group, key=lambda each: abs(each.version - own.version)) for group in by_layout.values()]
    return tuple(groups) if len(groups) <= MOST else ()


def _changes(own: _Own, missing: int) -> Iterator[list[ExactReading]]:
    """Yield what is tried, one change before two. `missing` bytes of the frame are not there."""
    known, body = api(own.key), plan(own.body, own.version)
    same = ExactReading(own.header_version, own.version, _plain(body))
    if missing:
        # All that the sender sent is there: its size counts more than it has.
        words = "a size that counts itself" if missing == PREFIX else f"a size that is {missing:,} too large"
        yield [same._replace(surplus=-missing, words=f"v{own.version} with {words}")]
        return
    versions = () if known is None else sorted(known.versions, key=lambda each: (abs(each - own.version), each))
    of_headers = [
        same._replace(header_version=each, words=f"v{own.version} with {_header(own, each)}")
        for each in _HEADERS[own.header]
        if each != own.header_version
    ]
    of_versions = [_of_version(own, each) for each in versions if each != own.version]
    of_codings = [same._replace(coding=each, words=f"v{own.version} {words}") for each, words in _codings(body)]
    counts_itself = same._replace(surplus=PREFIX, words=f"v{own.version} with a size that counts itself")
    yield [*of_headers, *of_versions, *of_codings, counts_itself]
    yield [
        each._replace(header_version=header, words=f"{each.words} with {_header(own, header)}")
        for each in (*of_versions, *of_codings)
        for header in _HEADERS[own.header]
        if header != each.header_version
    ]


def _of_version(own: _Own, version: int) -> ExactReading:
    header = (request_header_version if own.header == REQUEST_HEADER else response_header_version)(own.key, version)
    return ExactReading(header, version, _plain(plan(own.body, version)), words=f"v{version}")


def _header(own: _Own, version: int) -> str:
    return f"{'request' if own.header == REQUEST_HEADER else 'response'} header v{version}"


_NULL: Final = "with null where it has none"


def _codings(body: StructPlan) -> Iterator[tuple[Coding, str]]:
    """Yield the ways in which a version is written wrongly, with words for them."""
    yield _plain(body)._replace(any_null=True), _NULL
    if not body.flexible:
        yield (
            Coding(compact=True, tags=True, inner_tags=True),
            "with compact lengths and tagged fields",
        )
        return
    yield Coding(None, tags=False, inner_tags=False), "without tagged fields"
    yield Coding(None, tags=False, inner_tags=True), "without tagged fields at its end"
    yield Coding(None, tags=True, inner_tags=False), "without tagged fields in inner structures"
    yield Coding(compact=False, tags=True, inner_tags=True), "with lengths that are not compact"
    yield Coding(compact=False, tags=False, inner_tags=False), "with plain lengths and without tagged fields"
    yield _plain(body)._replace(adds_one=False), "with compact lengths to which 1 was not added"


class _Walker:
    """Walks over a frame along plans, coded in some way. Raises `WireError` or `IndexError` where it does not fit."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = PREFIX
        self.end = len(data)
        self._steps = STEPS

    def struct(self, layout: StructPlan, coding: Coding, *, is_inner: bool = True) -> None:
        for field in layout.fields:
            self._value(field.type, field, coding)
        if coding.inner_tags if is_inner else coding.tags:
            for _ in range(self._varint()):
                tag, size = self._varint(), self._varint()
                if not any(each.tag == tag for each in layout.tagged):
                    raise WireError("a tag that it does not have", self.at)
                self._skip(size)

    def _value(self, kind: TypePlan, field: FieldPlan, coding: Coding) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise WireError("too many fields", self.at)
        if isinstance(kind, ScalarPlan):
            self._scalar(kind, field)
        elif isinstance(kind, VariablePlan):
            self._variable(kind, coding)
        elif isinstance(kind, ArrayPlan):
            count = self._count(kind, coding, "int32")
            if count > self.end - self.at:
                raise WireError("count runs past the end", self.at)
            for _ in range(max(0, count)):
                self._value(kind.element, field, coding)
        else:
            if kind.nullable and self._data[self._skip(1)] > 127:
                return
            self.struct(kind, coding)

    def _scalar(self, kind: ScalarPlan, field: FieldPlan) -> None:
        value = STRUCTS[kind.type].unpack_from(self._data, self._skip(kind.size))[0]
        if field.name == _ERROR_FIELD and value not in _ERRORS:
            raise WireError("no error code", self.at)

    def _variable(self, kind: VariablePlan, coding: Coding) -> None:
        size = self._count(kind, coding, "int16" if kind.type == "string" else "int32")
        if size < 0:
            return
        start = self._skip(size)
        if kind.type == "string" and not is_printable(self._data[start : self.at]):
            raise WireError("no text", start)

    def _count(self, kind: VariablePlan | ArrayPlan, coding: Coding, code: str) -> int:
        if kind.compact if coding.compact is None else coding.compact:
            count = self._varint() - coding.adds_one
        else:
            count = STRUCTS[code].unpack_from(self._data, self._skip(STRUCTS[code].size))[0]
        if count < -1 or (count < 0 and not (kind.nullable or coding.any_null)):
            raise WireError("null, or a count below 0", self.at)
        return int(count)

    def _varint(self) -> int:
        value, self.at = uvarint(self._data, self.at)
        if self.at > self.end:
            raise WireError("varint runs past the end", self.at)
        return value

    def _skip(self, size: int) -> int:
        """Advance; return where that began."""
        at, stop = self.at, self.at + size
        if stop > self.end:
            raise WireError("runs past the end", at)
        self.at = stop
        return at

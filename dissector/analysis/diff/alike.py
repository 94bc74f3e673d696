"""Messages that say the same to a comparison, told by their bytes: of all that are alike one is read.

A message that was read leaves two masks over its bytes. `Layout.frame` has what decides where its fields stand: sizes,
counts, tags, and whether a position is negative. `Layout.telling` has what its leaves are made of: all but the client
id, the correlation id, positions that are not negative, and what of records no leaf tells. A frame of the same API,
version and size that is equal under the first is laid out alike, for a reader looks at nothing else to find its way;
two such frames that are equal under the second have equal leaves.

Invariants: what is found for a frame is what reading it would give; what is kept is bounded.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final

from dissector.analysis.diff.compared_values import is_position
from dissector.analysis.diff.matching_keys import Subject, first_error, subject_of
from dissector.analysis.diff.message_leaves import INTEGERS, Leaf, message_leaves
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.embedded.messages import DECODED
from dissector.protocol.embedded.secrets import SECRET_CARRIERS
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.message import PREFIX
from dissector.protocol.records.log_entries import LogEntryKind, split_entries
from dissector.protocol.schema.loader import api
from dissector.protocol.schema.model import Field
from dissector.protocol.tree import Node

OF_ANY_VERSION: Final = "ApiVersionsResponse"
"""May be answered in another version than was asked (KIP-511)."""
PRODUCE: Final = "ProduceRequest"
"""The one whose records are told of."""
SIGN: Final = 0x80
"""The bit of a number's first byte that says whether it is negative."""
LARGEST: Final = 1 << 16
"""Bytes of a frame that is worth masks."""
MOST_KEPT: Final = 16 << 20
"""Bytes of a side's messages that are kept, what was read of them and their masks apart."""
A_MESSAGE: Final = 2_000
"""Bytes that the smallest counts for."""
CORRELATION_ID: Final = {True: slice(PREFIX + 4, PREFIX + 8), False: slice(PREFIX, PREFIX + 4)}
"""By whether it is a request's frame."""
OF_PART: Final = (slice(8, 12), slice(16, 17))
"""In a part of a `records` field: its size and its magic."""
OF_BATCH: Final = (slice(21, 23), slice(43, 51))
"""What a leaf tells of a batch besides: its attributes and its producer's id."""


class Said:
    """What one message says, and with it all that are alike."""

    def __init__(self, message: ExchangeMessage) -> None:
        self.message = message

    @cached_property
    def leaves(self) -> list[Leaf]:
        return message_leaves(self.message)

    @cached_property
    def error(self) -> int:
        """Of a response, its first error code; 0 for none."""
        return first_error(self.message)

    def subject(self, api_name: str) -> Subject:
        """What a request of that API is about."""
        if self._subject is None:
            self._subject = subject_of(api_name, self.message.body)
        return self._subject

    _subject: Subject | None = None


@dataclass(slots=True)
class Layout:
    """Frames that are laid out alike."""

    frame: int
    laid: int
    """What such a frame has under `frame`."""
    telling: int
    said: dict[int, Said] = field(default_factory=dict)
    """By what a frame has under `telling`."""


@dataclass(slots=True)
class _Group:
    """Frames of one side, API, version and size."""

    layouts: list[Layout] = field(default_factory=list)
    missed: int = 0


class Alike:
    """What was read of one side of a comparison."""

    def __init__(self) -> None:
        self._groups: dict[tuple[bool, int, int, int], _Group] = {}
        self._kept = 0

    def said(
        self, is_request: bool, api_key: int, version: int, data: bytes, look: Callable[[], ExchangeMessage]
    ) -> Said:
        """What a frame says; `look` reads it, if none like it was read."""
        if len(data) > LARGEST or not _tells_all(api_key, version):
            return Said(look())
        group = self._groups.setdefault((is_request, api_key, version, len(data)), _Group())
        number = int.from_bytes(data, "big")
        for layout in group.layouts:
            if number & layout.frame == layout.laid:
                telling = number & layout.telling
                found = layout.said.get(telling)
                if found is None:
                    found = layout.said[telling] = self._read(look, len(data))
                return found
        found = self._read(look, len(data))
        group.missed += 1
        if group.missed & (group.missed - 1) == 0:  # the first, then ever fewer: masks cost more than a message read
            frame, telling = _masks(found.message, is_request)
            group.layouts.append(Layout(frame, number & frame, telling, {number & telling: found}))
        return found

    def _read(self, look: Callable[[], ExchangeMessage], size: int) -> Said:
        self._kept += size + A_MESSAGE
        if self._kept > MOST_KEPT:
            self._kept = 0
            self._groups.clear()
        return Said(look())


@lru_cache(maxsize=4096)
def _tells_all(api_key: int, version: int) -> bool:
    """Whether a frame by itself says how it is read: not one of a version that is not known, nor what a login or an
    envelope holds."""
    known = api(api_key)
    return (
        known is not None and known.versions.contains(version) and not SECRET_CARRIERS & {known.request, known.response}
    )


def _masks(message: ExchangeMessage, is_request: bool) -> tuple[int, int]:
    """`Layout.frame` and `Layout.telling` of a message's frame. Of one that is odd in any way, or whose version its
    bytes decide, both have all but the correlation id."""
    masks = _Masks(message)
    if not (message.findings or message.masked or message.shape.body == OF_ANY_VERSION):
        masks.fill()
    for mask in (masks.frame, masks.telling):
        mask[CORRELATION_ID[is_request]] = bytes(4)
    return int.from_bytes(masks.frame, "big"), int.from_bytes(masks.telling, "big")


class _Masks:
    """Both masks of a message, field by field: they begin with all of its bytes."""

    def __init__(self, message: ExchangeMessage) -> None:
        self.frame, self.telling = (bytearray(b"\xff" * len(message.data)) for _ in range(2))
        self._message = message

    def fill(self) -> None:
        """Take out what either mask has no need of."""
        for part in self._message.tree.children:
            for node in _fields(part):
                if node.schema is None or (node.value is None and not node.children):
                    continue  # a count, a size, a tag; null
                if node.schema.type == "records":
                    self._records(node)
                else:
                    self._value(node, told=part.name == "body")

    def _value(self, node: Node, *, told: bool) -> None:
        """A field with one value; `told`, whether that is a leaf."""
        start = node.start
        if node.type.endswith(("STRING", "BYTES")):
            raw = node.value.encode("utf-8", "surrogateescape") if isinstance(node.value, str) else node.value
            assert isinstance(raw, bytes)
            start = node.end - len(raw)
        nothing = bytes(node.end - start)
        self.frame[start : node.end] = nothing
        if not told:
            self.telling[start : node.end] = nothing
        elif isinstance(node.value, int) and node.schema is not None and _moves(node.schema):
            self.frame[start] = SIGN
            if node.value >= 0:
                self.telling[start : node.end] = nothing
                self.telling[start] = SIGN

    def _records(self, node: Node) -> None:
        """Record batches: of those that are produced a leaf tells some of the header, of others nothing."""
        body = self._message.shape.body
        if body not in RECORDS_FIELDS or not node.children:
            return
        start = node.children[0].end
        section = self._message.data[start : node.end]
        kept = [bytearray(len(section)) for _ in range(2)]
        for part in split_entries(section) if body == PRODUCE else ():
            whole = (slice(0, part.end - part.start),)
            of_telling = {LogEntryKind.BATCH: (*OF_PART, *OF_BATCH), LogEntryKind.MESSAGE: OF_PART}.get(
                part.kind, whole
            )
            of_frame = whole if of_telling is whole else OF_PART
            for mask, slices in zip(kept, (of_frame, of_telling), strict=True):
                for each in slices:
                    at = slice(part.start + each.start, part.start + each.stop)
                    mask[at] = b"\xff" * (at.stop - at.start)
        self.frame[start : node.end], self.telling[start : node.end] = kept


def _fields(node: Node) -> Iterator[Node]:
    """The fields below a node that hold no others, but for what was found inside of them."""
    for child in node.children:
        is_records = child.schema is not None and child.schema.type == "records"
        if not is_records and any(below.name != DECODED for below in child.children):
            yield from _fields(child)
        else:
            yield child


def _moves(field: Field) -> bool:
    """Whether a field's numbers are positions, if they are not negative."""
    return is_position(field.snake_name) and field.element_type in INTEGERS

"""Frame templates: frames that are equal in every byte that matters to a question share one answer.

Most of a busy capture repeats itself. A frame that was decoded leaves a template, two masks over its bytes:
  * `layout` has the bits that decide where fields stand: sizes, counts, tags. A frame of the same API, version and size
    that is equal under it is laid out the same way, because a reader looks at nothing else to find its way;
  * `key` has the values on which the answer depends. Frames of one template with equal keys get the same answer.
All other bytes (correlation ids, offsets, times) may differ. Which values belong to the key is up to the caller.

Invariants:
  * the answer for a frame is the one that decoding it would give, if the caller's masks leave nothing out: each caller
    has a property test;
  * templates and answers are bounded, and making templates has to pay: `CREDIT` of them are made ahead of frames found.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from dissector.protocol.embedded.messages import DECODED
from dissector.protocol.message import PREFIX
from dissector.protocol.tree import Node

_ALL: Final = b"\xff"
TEMPLATES: Final = 16
"""Of one API, version and size."""
KINDS: Final = 1 << 14
"""APIs, versions and sizes that are remembered."""
ANSWERS: Final = 1 << 16
CREDIT: Final = 512
PAYS: Final = 16
"""Frames that a template should spare decoding."""
SIGN: Final = 0x80
"""The bit of a number's first byte that is set where it is negative."""
Answer = TypeVar("Answer", bound=Hashable)


class FrameMasks:
    """The two masks of a frame. All bytes begin as layout, but the size prefix, which is that of the template, and the
    correlation id."""

    def __init__(self, data: bytes, *, is_request: bool) -> None:
        self.data = data
        self.layout = bytearray(_ALL * len(data))
        self.key = bytearray(len(data))
        self.ignore(0, PREFIX)
        start = PREFIX + 4 if is_request else PREFIX
        self.ignore(min(start, len(data)), min(start + 4, len(data)))

    def ignore(self, start: int, end: int) -> None:
        """These bytes may be anything."""
        self.layout[start:end] = self.key[start:end] = bytes(end - start)

    def distinguish(self, start: int, end: int) -> None:
        """The answer depends on these bytes, the layout does not."""
        self.layout[start:end] = bytes(end - start)
        self.key[start:end] = _ALL * (end - start)

    def fix(self, start: int, end: int) -> None:
        """The layout depends on these bytes."""
        self.layout[start:end] = _ALL * (end - start)
        self.key[start:end] = bytes(end - start)

    def fix_sign(self, start: int) -> None:
        """The layout depends on the sign of the number that begins there."""
        self.layout[start] |= SIGN


def value_spans(tree: Node) -> Iterator[tuple[Node, int, int]]:
    """The fields of a frame that hold a value, with where its bytes begin and end; the size in front of a text belongs
    to the layout, and so do counts, tags and null. Records are one value."""
    for part in tree.children:
        for node in _fields(part):
            if node.schema is None or (node.value is None and not node.children):
                continue  # a count, a size, a tag; null
            start = node.start
            if node.schema.type == "records" and node.children:
                start = node.children[0].end
            elif node.type.endswith(("STRING", "BYTES", "RECORDS")):
                raw = node.value.encode("utf-8", "surrogateescape") if isinstance(node.value, str) else node.value
                assert isinstance(raw, bytes)
                start = node.end - len(raw)
            yield node, start, node.end


def _fields(node: Node) -> Iterator[Node]:
    """The fields below a node that hold no others. What was decoded inside of bytes is no field of the frame."""
    for child in node.children:
        is_records = child.schema is not None and child.schema.type == "records"
        if not is_records and any(below.name != DECODED for below in child.children):
            yield from _fields(child)
        else:
            yield child


@dataclass(slots=True)
class _Template(Generic[Answer]):
    """Frames that are laid out the same way. Masks are kept as numbers."""

    layout: int
    key: int
    bits: int
    """What such a frame has under `layout`."""
    answers: dict[int, int] = field(default_factory=dict)
    """Number of the answer, by what a frame has under `key`."""

    @classmethod
    def of(cls, masks: FrameMasks) -> "_Template[Answer]":
        layout, key = (int.from_bytes(mask, "big") for mask in (masks.layout, masks.key))
        return cls(layout, key, int.from_bytes(masks.data, "big") & layout)


@dataclass(slots=True)
class _Kind(Generic[Answer]):
    """Frames of one API, version and size."""

    templates: list[_Template[Answer]] = field(default_factory=list)
    missed: int = 0


class FrameTemplates(Generic[Answer]):
    """Templates of requests, or of responses, with their answers."""

    def __init__(self, longest: int) -> None:
        """`longest` bounds the bytes of a frame for which a template is made."""
        self._longest = longest
        self._kinds: dict[int, _Kind[Answer]] = {}
        self._answers: list[Answer] = []
        self._numbers: dict[Answer, int] = {}
        self._credit = CREDIT
        self._found = 0

    def answer(self, number: int) -> Answer:
        """What a number from 1 stands for. Equal answers have one number."""
        return self._answers[number - 1]

    def find(self, api_key: int, version: int, data: bytes) -> int:
        """The number of the answer for a frame; 0 where none is known."""
        kind = self._kinds.get(_kind(api_key, version, len(data)))
        if kind is None:
            return 0
        number = int.from_bytes(data, "big")
        for template in kind.templates:
            if number & template.layout == template.bits:
                found = template.answers.get(number & template.key, 0)
                self._pay(int(found > 0))
                return found
        return 0

    def learn(self, api_key: int, version: int, data: bytes, answer: Answer, masks: Callable[[], FrameMasks]) -> int:
        """A frame was decoded, and `answer` is what it gave. The number of that answer; 0 where the frame fits no
        template. `masks` makes its masks.

        Masks are made for the second frame of a kind that no template fits, then for ever fewer: they cost more than
        decoding."""
        if len(data) > self._longest:
            return 0
        number = int.from_bytes(data, "big")
        kind = self._kind(_kind(api_key, version, len(data)))
        template = next((each for each in kind.templates if number & each.layout == each.bits), None)
        if template is None:
            kind.missed += 1
            if kind.missed & (kind.missed - 1) or not 1 < kind.missed < 1 << TEMPLATES or not self._credit:
                return 0
            self._credit -= 1
            template = _Template.of(masks())
            kind.templates.append(template)
        if len(self._answers) == ANSWERS:
            return self._numbers.get(answer, 0)
        known = self._numbers.setdefault(answer, len(self._answers) + 1)
        if known > len(self._answers):
            self._answers.append(answer)
        template.answers[number & template.key] = known
        return known

    def _kind(self, number: int) -> _Kind[Answer]:
        kind = self._kinds.get(number)
        if kind is None:
            kind = _Kind()
            if len(self._kinds) < KINDS:
                self._kinds[number] = kind
        return kind

    def _pay(self, found: int) -> None:
        self._found += found
        if self._found >= PAYS:
            self._credit = min(CREDIT, self._credit + self._found // PAYS)
            self._found %= PAYS


def _kind(api_key: int, version: int, size: int) -> int:
    return api_key << 40 | version << 24 | size

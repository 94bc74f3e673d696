"""Which fields of which messages make up the traffic.

Measured on traced frames: their leaves tile them, so the bytes of all fields are those of the frame. Of each kind of
message (API, version, side) only a sample is traced where there are many: what they hold is then an estimate, in
proportion to the bytes of all, and `FieldBytes` says how many were looked at. Records count as one field; what the
capture lacks of a frame is `(not captured)`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dissector.exchange.model import ExchangeMessage
from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.tracer import Tracer
from dissector.protocol.records.tracing import RecordTracer
from dissector.protocol.tree import Node
from dissector.protocol.wire import WireError

_INDEX: Final = re.compile(r"\[\d+\]")
_OWN: Final = re.compile(r"\.?\([^)]*\).*$")
"""Parts that are the wire's own, as a count or a size: they belong to the field that they stand in."""


class MessageKind(NamedTuple):
    """A message of an API in one version."""

    api_key: int
    version: int
    side: str
    """``request`` or ``response``."""


@dataclass(slots=True)
class MessageSample:
    """Messages of one kind: all that there are, and those that were traced."""

    messages: int = 0
    bytes: int = 0
    traced: int = 0
    traced_bytes: int = 0
    paths: dict[str, int] = field(default_factory=dict)
    """Bytes of the traced ones by the field's path, without indexes: ``body.topics.partitions.records``."""

    @property
    def is_whole(self) -> bool:
        """Whether all were traced."""
        return self.traced == self.messages

    def estimated(self) -> Iterator[tuple[str, int]]:
        """Bytes of all messages by path."""
        for path, count in self.paths.items():
            yield path, count if self.is_whole else count * self.bytes // max(1, self.traced_bytes)

    def take(self, size: int, paths: dict[str, int]) -> None:
        """A message was traced."""
        self.traced += 1
        self.traced_bytes += size
        for path, count in paths.items():
            self.paths[path] = self.paths.get(path, 0) + count

    def merge(self, other: "MessageSample") -> None:
        """Count what another has counted, too."""
        self.messages += other.messages
        self.bytes += other.bytes
        self.traced += other.traced
        self.traced_bytes += other.traced_bytes
        for path, count in other.paths.items():
            self.paths[path] = self.paths.get(path, 0) + count


@dataclass(slots=True)
class FieldBytes:
    """Samples by the kind of message."""

    kinds: dict[MessageKind, MessageSample] = field(default_factory=dict)

    def of(self, kind: MessageKind) -> MessageSample:
        """The sample of a kind."""
        return self.kinds.setdefault(kind, MessageSample())

    @property
    def is_whole(self) -> bool:
        """Whether every message was traced."""
        return all(sample.is_whole for sample in self.kinds.values())

    @property
    def traced(self) -> int:
        """How many messages were traced."""
        return sum(sample.traced for sample in self.kinds.values())

    def merge(self, other: "FieldBytes") -> None:
        """Count what another has counted, too."""
        for kind, sample in other.kinds.items():
            self.of(kind).merge(sample)


class _OpaqueRecords(RecordTracer):
    """Takes the place of what opens records: they stay one field."""

    def __init__(self) -> None:
        pass

    def field(self, data: bytes, start: int, end: int, parent: Node) -> None:
        """Nothing is hung under `parent`, whose span covers them."""


def paths_of(message: ExchangeMessage) -> dict[str, int]:
    """Bytes of a frame by the path of the field, their sum the frame's size.

    What is damaged, or no field explains, is ``(rest)``.
    """
    root = Node("frame", "", "STRUCT", 0, len(message.data))
    tracer = Tracer(message.data, 0, message.whole, _OpaqueRecords())
    shape = message.shape
    try:
        tracer.prefix(root)
        if shape.header is not None:
            tracer.message(plan(shape.header, shape.header_version), "header", root)
        if shape.body is not None:
            tracer.message(plan(shape.body, shape.body_version), "body", root)
    except WireError:
        pass
    paths: dict[str, int] = {}
    for node in root.walk():
        own = node.size - sum(child.size for child in node.children) if node is not root else 0
        if own:
            path = _OWN.sub("", _INDEX.sub("", node.path)) or node.path
            paths[path] = paths.get(path, 0) + own
    rest, missing = len(message.data) - sum(paths.values()), message.size - len(message.data)
    return paths | {name: count for name, count in (("(rest)", rest), ("(not captured)", missing)) if count}

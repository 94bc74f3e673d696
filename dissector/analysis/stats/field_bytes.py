"""The share of each field in the traffic.

Measured on traced frames: their leaves tile them, so the bytes of all fields add up to the frame; of frames with the
same layout one is traced. Of each kind of message (API, version, side) at most a sample is measured: the numbers are
then estimates, in proportion to the bytes of all, and `FieldBytes` has the number of measured messages. Records count
as one field; bytes that the capture lacks are `(not captured)`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.exchange.message_shapes import Shape
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.tracer import Tracer
from dissector.protocol.records.compression import DecompressionBudget
from dissector.protocol.records.tracing import RecordTracer
from dissector.protocol.tree import Node
from dissector.protocol.wire import WireError

ROWS_PER_STEP: Final = 1 << 10
_INDEX: Final = re.compile(r"\[\d+\]")
_WIRE_PARTS: Final = re.compile(r"\.?\([^)]*\).*$")
"""Parts of the encoding, such as a count or a size: they belong to the field that they are in."""


class MessageKind(NamedTuple):
    """A message of an API in one version."""

    api_key: int
    version: int
    side: str
    """``request`` or ``response``."""


@dataclass(slots=True)
class MessageSample:
    """Messages of one kind: all of them, and those that were traced."""

    messages: int = 0
    bytes: int = 0
    traced: int = 0
    traced_bytes: int = 0
    paths: dict[str, int] = field(default_factory=dict)
    """Bytes of traced messages by the field's path, without indexes: ``body.topics.partitions.records``."""

    @property
    def is_complete(self) -> bool:
        """Whether all messages were traced."""
        return self.traced == self.messages

    def estimated(self) -> Iterator[tuple[str, int]]:
        """Yield the bytes of all messages by path."""
        for path, count in self.paths.items():
            yield path, count if self.is_complete else count * self.bytes // max(1, self.traced_bytes)

    def add_traced(self, size: int, paths: dict[str, int]) -> None:
        """Add a traced message."""
        self.traced += 1
        self.traced_bytes += size
        for path, count in paths.items():
            self.paths[path] = self.paths.get(path, 0) + count

    def merge(self, other: "MessageSample") -> None:
        """Add the counts of another one."""
        self.messages += other.messages
        self.bytes += other.bytes
        self.traced += other.traced
        self.traced_bytes += other.traced_bytes
        for path, count in other.paths.items():
            self.paths[path] = self.paths.get(path, 0) + count


@dataclass(slots=True)
class FieldBytes:
    """Samples by kind of message."""

    kinds: dict[MessageKind, MessageSample] = field(default_factory=dict)

    def of(self, kind: MessageKind) -> MessageSample:
        """Return the sample of a kind."""
        return self.kinds.setdefault(kind, MessageSample())

    @property
    def is_complete(self) -> bool:
        """Whether every message was traced."""
        return all(sample.is_complete for sample in self.kinds.values())

    @property
    def traced(self) -> int:
        """The number of traced messages."""
        return sum(sample.traced for sample in self.kinds.values())

    def merge(self, other: "FieldBytes") -> None:
        """Add the counts of another one."""
        for kind, sample in other.kinds.items():
            self.of(kind).merge(sample)


def trace_fields(capture: Capture, rows: Int64, fields: FieldBytes) -> Iterator[None]:
    """Add the messages of rows, ascending, all of them exchanges with a request. Those of equal shape are traced once.
    Yields between short steps, each of few APIs and versions: rows of one layout are read together."""
    known: dict[Shape, dict[str, int]] = {}
    found = capture.index_columns(rows)
    rows = rows[np.argsort(found.api_key << 16 | found.version, kind="stable")]
    for start in range(0, len(rows), ROWS_PER_STEP):
        some = rows[start : start + ROWS_PER_STEP]
        columns = capture.index_columns(some)
        for side, sizes in (("request", columns.request_size), ("response", columns.response_size)):
            shapes = capture.index.message_shapes(some, is_request=side == "request")
            kinds = zip(columns.api_key.tolist(), columns.version.tolist(), sizes.tolist(), strict=True)
            for row, shape, (key, version, size) in zip(some.tolist(), shapes, kinds, strict=True):
                if size < 0:
                    continue
                paths = None if shape is None else known.get(shape)
                if paths is None:
                    paths = paths_of(getattr(capture.exchange(row), side))
                    if shape is not None:
                        known[shape] = paths
                fields.of(MessageKind(key, version, side)).add_traced(size, paths)
        yield


class _OpaqueRecords(RecordTracer):
    """Replaces the tracer of records: they stay one field."""

    def __init__(self) -> None:
        super().__init__([], DecompressionBudget(0, 0))  # nothing is decompressed

    def field(self, data: bytes, start: int, end: int, parent: Node) -> None:
        """Add nothing under `parent`, whose span covers the records."""


def paths_of(message: ExchangeMessage) -> dict[str, int]:
    """Return the bytes of a frame by field path; their sum is the frame's size.

    Damaged bytes, and bytes of no field, are ``(rest)``.
    """
    root = Node("frame", "", "STRUCT", 0, len(message.data))
    tracer = Tracer(message.data, 0, message.whole, _OpaqueRecords())
    layout = message.layout
    try:
        tracer.prefix(root)
        if layout.header is not None:
            tracer.message(plan(layout.header, layout.header_version), "header", root)
        if layout.body is not None:
            tracer.message(plan(layout.body, layout.body_version), "body", root)
    except WireError:
        pass
    paths: dict[str, int] = {}
    for node in root.walk():
        own_bytes = node.size - sum(child.size for child in node.children) if node is not root else 0
        if own_bytes:
            path = _WIRE_PARTS.sub("", _INDEX.sub("", node.path)) or node.path
            paths[path] = paths.get(path, 0) + own_bytes
    rest, missing = len(message.data) - sum(paths.values()), message.size - len(message.data)
    return paths | {name: count for name, count in (("(rest)", rest), ("(not captured)", missing)) if count}

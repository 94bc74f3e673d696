"""The share of each field in the traffic.

Measured on traced frames: their leaves tile them, so the bytes of all fields add up to the frame; of frames with the
same layout one is traced. Of each kind of message (API, version, side) at most a sample is measured: the numbers are
then estimates, in proportion to the bytes of all, and `FieldBytes` has the number of measured messages. Records count
as one field; bytes that the capture lacks are `(not captured)`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.exchange.equal_exchanges import SharedRow
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.tracer import Tracer
from dissector.protocol.message import MessageLayout
from dissector.protocol.records.compression import DecompressionBudget
from dissector.protocol.records.tracing import RecordTracer
from dissector.protocol.tree import Node
from dissector.protocol.wire import WireError

ROWS_PER_STEP: Final = 1 << 10
_OF_FIELD: Final = ("[", "(")
"""What names of elements, and of parts of the encoding such as a count, begin with: they belong to their field."""
_SIZE: Final = 128
"""Bytes that a path takes, about."""
Paths = dict[str, int]
"""Bytes by the field's path, without indexes: ``body.topics.partitions.records``."""


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
    paths: Paths = field(default_factory=dict)
    """Of traced messages."""

    @property
    def is_complete(self) -> bool:
        """Whether all messages were traced."""
        return self.traced == self.messages

    def estimated(self) -> Iterator[tuple[str, int]]:
        """Yield the bytes of all messages by path."""
        for path, count in self.paths.items():
            yield path, count if self.is_complete else count * self.bytes // max(1, self.traced_bytes)

    def add_traced(self, size: int, paths: Paths) -> None:
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
    """Add the messages of rows, ascending, all of them exchanges with a request. Those of equal shape are traced once,
    and of those without a shape equal ones. Yields between short steps, each of few APIs and versions: rows of one
    layout are read together."""
    shaped = capture.messages.shapes(_paths_of_plain)
    equal = capture.messages.equal_exchanges(_shared_paths)
    found = capture.index.numbers(rows)
    rows = rows[np.argsort(found.api_key << 16 | found.version, kind="stable")]
    for start in range(0, len(rows), ROWS_PER_STEP):
        some = rows[start : start + ROWS_PER_STEP]
        columns = capture.index.numbers(some)
        sizes = columns.request_size, columns.response_size
        paths = shaped(some, True), shaped(some, False)
        is_bare = [(size >= 0) & np.array([each is None for each in of]) for size, of in zip(sizes, paths, strict=True)]
        bare = np.flatnonzero(is_bare[0] | is_bare[1])
        bare = bare[np.argsort(some[bare])]
        for at, known in zip(bare.tolist(), equal(some[bare]), strict=True):
            paths[0][at], paths[1][at] = known or _paths_of_both(capture.exchange(int(some[at])))
        for side, size, of in zip(("request", "response"), sizes, paths, strict=True):
            kinds = zip(columns.api_key.tolist(), columns.version.tolist(), size.tolist(), of, strict=True)
            for key, version, count, each in kinds:
                if each is not None and count >= 0:
                    fields.of(MessageKind(key, version, side)).add_traced(count, each)
        yield


class _OpaqueRecords(RecordTracer):
    """Replaces the tracer of records: they stay one field."""

    def __init__(self) -> None:
        super().__init__([], DecompressionBudget(0, 0))  # nothing is decompressed

    def field(self, data: bytes, start: int, end: int, parent: Node) -> None:
        """Add nothing under `parent`, whose span covers the records."""


def paths_of(message: ExchangeMessage) -> Paths:
    """Return the bytes of a frame by field path; their sum is the frame's size.

    Damaged bytes, and bytes of no field, are ``(rest)``.
    """
    paths = _paths(message.layout, message.data, message.whole)
    missing = message.size - len(message.data)
    return paths | {"(not captured)": missing} if missing else paths


def _paths_of_plain(layout: MessageLayout, data: bytes) -> Paths:
    return _paths(layout, data, len(data))


def _paths_of_both(exchange: Exchange) -> tuple[Paths, Paths]:
    request, response = ({} if each is None else paths_of(each) for each in (exchange.request, exchange.response))
    return request, response


def _shared_paths(exchange: Exchange) -> SharedRow[tuple[Paths, Paths]]:
    paths = _paths_of_both(exchange)
    return SharedRow(paths, _SIZE * sum(map(len, paths)))


def _paths(layout: MessageLayout, data: bytes, whole: int) -> Paths:
    """The bytes of what was captured of a frame, of which `whole` come before its first gap."""
    root = Node("frame", "", "STRUCT", 0, len(data))
    tracer = Tracer(data, 0, whole, _OpaqueRecords())
    try:
        tracer.prefix(root)
        if layout.header is not None:
            tracer.message(plan(layout.header, layout.header_version), "header", root)
        if layout.body is not None:
            tracer.message(plan(layout.body, layout.body_version), "body", root)
    except WireError:
        pass
    paths: Paths = {}
    rest = len(data)
    nodes = [(child, "") for child in reversed(root.children)]
    while nodes:
        node, above = nodes.pop()
        path = above if node.name.startswith(_OF_FIELD) else f"{above}.{node.name}" if above else node.name
        own = node.end - node.start - sum(child.end - child.start for child in node.children)
        if own:
            paths[path] = paths.get(path, 0) + own
            rest -= own
        nodes.extend((child, path) for child in reversed(node.children))
    return paths | {"(rest)": rest} if rest else paths

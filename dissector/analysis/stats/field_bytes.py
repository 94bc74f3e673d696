"""The share of each field in the traffic, measured on a sample.

Measured on traced frames: their leaves tile them, so the bytes of all fields add up to the frame; of frames with the
same layout one is traced. Of each kind of message (API, version, side) at most a sample is measured: the numbers are
then estimates, in proportion to the bytes of all, and `FieldBytes` has the number of measured messages. Records count
as one field; bytes that the capture lacks are `(not captured)`.

The sample is uniform, and drawn in one pass: every row gets a random number, and the rows with the smallest numbers are
the sample. The seed is fixed: a capture has the same sample each time.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.index.index_columns import IndexColumns
from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.tracer import Tracer
from dissector.protocol.message_layout import MessageLayout
from dissector.protocol.records.compression import DecompressionBudget
from dissector.protocol.records.tracing import OpaqueRecords
from dissector.protocol.schema.model import Field
from dissector.protocol.tree import Node
from dissector.protocol.wire import WireError

SAMPLE_SIZE: Final = 200
"""At most so many exchanges of an API and version."""
_SEED: Final = 20261121
ROWS_PER_STEP: Final = 1 << 10
_OF_FIELD: Final = ("[", "(")
"""What names of elements, and of parts of the encoding such as a count, begin with: they belong to their field."""
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

    def add_traced(self, size: int, paths: Paths, times: int = 1) -> None:
        """Add a traced message, or so many of that size and with these bytes."""
        self.traced += times
        self.traced_bytes += size * times
        for path, count in paths.items():
            self.paths[path] = self.paths.get(path, 0) + count * times


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


class ExchangeSampler:
    """The sample so far."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(_SEED)
        self._kept: dict[int, tuple[Int64, Int64]] = {}
        """By group: random numbers, ascending, and their rows."""

    def rows(self) -> Int64:
        """Return the rows of the sample, ascending."""
        return np.sort(np.concatenate([np.zeros(0, np.int64), *(rows for _, rows in self._kept.values())]))

    def add(self, rows: Int64, groups: Int64, found: IndexColumns, fields: FieldBytes) -> None:
        """Add rows; `groups` numbers the API and version of each. Messages and bytes of all are counted in `fields`.
        Responses without a request have no API, and are left out."""
        has_api = found.api_key >= 0
        rows, groups, found = rows[has_api], groups[has_api], found.where(has_api)
        if not len(rows):
            return
        numbers = self._random.integers(0, 1 << 62, len(rows))
        order = np.lexsort((numbers, groups))
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
            which = order[start:stop]
            group = int(groups[which[0]])
            self._keep(group, numbers[which[:SAMPLE_SIZE]], rows[which[:SAMPLE_SIZE]])
            key, version = int(found.api_key[which[0]]), int(found.version[which[0]])
            for side, sizes in (("request", found.request_size[which]), ("response", found.response_size[which])):
                present = sizes >= 0
                if present.any():
                    sample = fields.of(MessageKind(key, version, side))
                    sample.messages += int(present.sum())
                    sample.bytes += int(sizes[present].sum())

    def _keep(self, group: int, numbers: Int64, rows: Int64) -> None:
        kept = self._kept.get(group)
        if kept is not None:
            numbers, rows = np.concatenate((kept[0], numbers)), np.concatenate((kept[1], rows))
        order = np.argsort(numbers, kind="stable")[:SAMPLE_SIZE]
        self._kept[group] = numbers[order], rows[order]


def trace_fields(capture: Capture, rows: Int64, fields: FieldBytes) -> Iterator[None]:
    """Add the messages of rows, ascending, all of them exchanges with a request. Those of equal shape are traced once.
    Yields between short steps, each of few APIs and versions: rows of one layout are read together."""
    shaped = capture.messages.shapes(_paths_of_plain)
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
        for at, exchange in zip(bare.tolist(), capture.at(some[bare]), strict=True):
            paths[0][at], paths[1][at] = _paths_of_both(exchange)
        for side, size, of in zip(("request", "response"), sizes, paths, strict=True):
            kinds = zip(columns.api_key.tolist(), columns.version.tolist(), size.tolist(), map(id, of), strict=True)
            by_id = {id(each): each for each in of if each is not None}
            for (key, version, count, which), times in Counter(kinds).items():
                if which in by_id and count >= 0:
                    fields.of(MessageKind(key, version, side)).add_traced(count, by_id[which], times)
        yield


class _SpanTracer(Tracer):
    """Gives nodes names and spans, and no path or meaning, which take a third of the time. Records stay one field."""

    def __init__(self, data: bytes, end: int) -> None:
        super().__init__(data, 0, end, OpaqueRecords([], DecompressionBudget(0, 0)))  # nothing is decompressed

    def begin(self, parent: Node, name: str, kind: str, schema: Field | None = None) -> Node:
        self._budget.admit_nodes(1, self.at)
        node = Node(name, "", kind, self.at, self.at, schema=schema)
        parent.add(node)
        return node

    def _name(self, node: Node, schema: Field, value: int) -> None:
        """Add no name: values are not read."""


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


def _paths(layout: MessageLayout, data: bytes, whole: int) -> Paths:
    """The bytes of what was captured of a frame, of which `whole` come before its first gap."""
    root = Node("frame", "", "STRUCT", 0, len(data))
    tracer = _SpanTracer(data, whole)
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

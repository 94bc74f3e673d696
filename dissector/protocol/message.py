"""Decodes one frame, as a request or a response of a known API and version: into values, or into a tree.

This is the boundary where damage stops: whatever the bytes are, `read` and `trace` return, with findings. The caller
knows which side sent the frame, and which request a response belongs to.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from dissector.core import limits
from dissector.core.finding import Finding, Severity
from dissector.core.text import counted
from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.reader import DECODE_ERRORS, Reader, reader
from dissector.protocol.codec.tracer import SparseTracer, Tracer
from dissector.protocol.embedded.context import EMPTY_CONTEXT, DecodingContext, annotate_ids
from dissector.protocol.embedded.secrets import MASKED
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.embedded.tree import TreeEmbedder
from dissector.protocol.message_layout import (
    PREFIX,
    MessageLayout,
)
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.records.tracing import RecordTracer, over_limit
from dissector.protocol.schema.loader import alternatives
from dissector.protocol.schema.model import MessageSchema
from dissector.protocol.tree import UNPARSED, ByteSource, Node, struct_values
from dissector.protocol.wire import LimitError, WireError

AUTH_BYTES: Final = "auth_bytes"
"""Kafka's name of the field with a SASL token."""

Values = dict[str, Any]


@dataclass(slots=True)
class Decoded:
    """A frame as plain values. `header` and `body` are empty if they could not be read."""

    header: Values = field(default_factory=dict)
    body: Values = field(default_factory=dict)
    rest: bytes = b""
    """Bytes that are in neither: trailing bytes, or what could not be read of a body."""
    findings: list[Finding] = field(default_factory=list)
    partial: Values = field(default_factory=dict)
    """The fields that are whole, of a body that could not be read to its end. `body` is empty then."""
    partial_bytes: bytes = b""
    """The bytes of `partial`, between the header and `rest`."""

    @property
    def fitting_body(self) -> Values:
        """The body of a message that fits its layout, else none. One that can't be read is not traced for it."""
        return self.body if self.body and not self.rest else {}


@dataclass(slots=True)
class Traced:
    """The tree of a frame; `sources[0]` is the frame itself."""

    tree: Node
    sources: list[ByteSource]
    findings: list[Finding]


def read_or_trace(data: bytes, layout: MessageLayout, end: int | None = None) -> tuple[Decoded, Traced | None]:
    """Decode a frame into values; of one that can't be read to its end return what was traced to know how far it can
    be, too, by `tracer_of_reasons`."""
    decoded = read(data, layout, end)
    return decoded, decoded.trace() if isinstance(decoded, _Damaged) else None


def read(data: bytes, layout: MessageLayout, end: int | None = None) -> Decoded:
    """Decode a frame into values. Bytes from `end` on follow a gap and are not read. One that can't be read to its end
    is traced when somebody asks why, or how far it can be."""
    stop = _stop(data, layout, end)
    if layout.header is None:
        return _read_headless(data, layout, stop)
    whole = data if stop == len(data) else data[:stop]
    read_header, read_body, others = _readers(layout.header, layout.header_version, layout.body, layout.body_version)
    header: Values = {}
    body: Values = {}
    at, other = PREFIX, 0
    try:
        header, at = read_header(whole, PREFIX, stop)
        if layout.body is None or read_body is None:
            return Decoded(header, body, whole[at:], list(layout.findings))
        if others:
            other = _other_layout(layout.body, layout.body_version, whole, at)
            read_body = reader(layout.body, layout.body_version, other)
        body, at = read_body(whole, at, stop)
    except DECODE_ERRORS:
        return _Damaged(header, data, layout, end, at)
    findings = list(layout.findings)
    if other:
        findings.append(_other_layout_finding(layout.body, layout.body_version, other))
    if at != stop:
        findings.append(_trailing_bytes_finding(stop - at, at))
    return Decoded(header, body, whole[at:], findings)


class _Damaged(Decoded):
    """A frame that can't be read to its end. Its header is empty if that is what can't be; its body begins at `at`."""

    __slots__ = ("_at", "_frame")

    def __init__(self, header: Values, data: bytes, layout: MessageLayout, end: int | None, at: int) -> None:
        self.header, self.body = header, {}
        self._frame, self._at = (data, layout, end), at

    def __getattr__(self, name: str) -> Any:
        """Only what is not there yet is looked for here."""
        if name not in _FOUND_BY_TRACING:
            raise AttributeError(name)
        self.trace()
        return getattr(self, name)

    def trace(self) -> Traced:
        """Find what it has besides its fields. The tree is not kept: it is large."""
        data, layout, end = self._frame
        traced = trace(data, layout, end, tracer_type=tracer_of_reasons(layout))
        self.findings, self.rest = traced.findings, data[self._at : _stop(data, layout, end)]
        self.partial, self.partial_bytes = {}, b""
        if self.header:
            _keep_whole_fields(self, traced.tree, data)
        return traced


_FOUND_BY_TRACING: Final = frozenset(("rest", "findings", "partial", "partial_bytes"))


def tracer_of_reasons(layout: MessageLayout) -> type[Tracer]:
    """What traces a message of which no more is asked than its values, its first fields, and why it can't be read to
    its end: a whole tree of a megabyte takes seconds."""
    return Tracer if layout.body in RECORDS_FIELDS else SparseTracer


def _read_headless(data: bytes, layout: MessageLayout, stop: int) -> Decoded:
    """Decode a SASL token, or bytes that are not a frame."""
    body: Values = {AUTH_BYTES: data[PREFIX:stop]} if layout.token else {}
    rest = data[PREFIX:stop] if layout.masked_from is not None else b""
    return Decoded({}, body, rest, list(layout.findings))


def _keep_whole_fields(decoded: Decoded, tree: Node, data: bytes) -> None:
    """Keep what is whole of a body that can't be read to its end; `rest` begins behind it."""
    for node in tree.children:
        if node.name == "body" and node.children:
            decoded.partial = struct_values(node, data)
            size = node.end - node.start
            decoded.partial_bytes, decoded.rest = decoded.rest[:size], decoded.rest[size:]


def _stop(data: bytes, layout: MessageLayout, end: int | None) -> int:
    """Return where reading ends: before a gap, and before what is masked."""
    stop = len(data) if end is None else end
    return stop if layout.masked_from is None else min(stop, layout.masked_from)


@lru_cache(maxsize=4096)
def _readers(
    header: str, header_version: int, body: str | None, version: int
) -> tuple[Reader, Reader | None, tuple[MessageSchema, ...]]:
    """Return the readers of a header and a body, and the other layouts that the body may have."""
    read_header = reader(header, header_version)
    return (
        (read_header, None, ()) if body is None else (read_header, reader(body, version), alternatives(body, version))
    )


def _other_layout(name: str, version: int, data: bytes, at: int) -> int:
    """Return the number of the alternative layout that a body has; 0 if the newest layout fits, or none does.

    The version does not determine the layout: the right one is the one that ends where the frame ends.
    """
    others = len(alternatives(name, version))
    return next((n for n in range(others + 1) if _fits(reader(name, version, n), data, at)), 0) if others else 0


def _fits(read_body: Reader, data: bytes, at: int) -> bool:
    try:
        return read_body(data, at, len(data))[1] == len(data)
    except DECODE_ERRORS:
        return False


def _other_layout_finding(name: str, version: int, other: int) -> Finding:
    release = list(alternatives(name, version)[other - 1].releases)[-1]
    words = f"version {version} in the layout of Kafka {release}, which later releases changed"
    return Finding("other-layout", Severity.NOTE, words, "body")


def _trailing_bytes_finding(size: int, at: int) -> Finding:
    words = f"{counted(size, 'byte')} after the last field, at offset {at:,}"
    return Finding("trailing-bytes", Severity.WARNING, words, "(rest)")


def trace(
    data: bytes,
    layout: MessageLayout,
    end: int | None = None,
    context: DecodingContext = EMPTY_CONTEXT,
    bounds: limits.Limits = limits.DEFAULT,
    *,
    tracer_type: type[Tracer] = Tracer,
    record_tracer: type[RecordTracer] = RecordTracer,
) -> Traced:
    """Decode a frame into a tree, with the contents of its bytes fields.

    The leaves tile `data`. Bytes from `end` on follow a gap and are not read. A message that is damaged can be read for
    its values alone, by `SparseTracer`; records can be left unread, by `OpaqueRecords`.
    """
    stop = _stop(data, layout, end)
    sources = [ByteSource(0, "frame", data)]
    root = Node("frame", "", "STRUCT", 0, len(data))
    root.findings += layout.findings
    records = record_tracer(sources, frame_budget(bounds))
    tracer = tracer_type(data, 0, stop, records, frame_end=0 if layout.masked_from is None else len(data))
    try:
        if layout.token:
            tracer.prefix(root)
            root.add(Node(AUTH_BYTES, AUTH_BYTES, "BYTES", tracer.at, stop, data[tracer.at : stop]))
            tracer.at = stop
            TreeEmbedder(sources, records, context).token(root.children[-1])
        if layout.header is not None:
            tracer.prefix(root)
            tracer.message(plan(layout.header, layout.header_version), "header", root)
        if layout.body is not None:
            other = _other_layout(layout.body, layout.body_version, data[:stop], tracer.at)
            if other:
                root.findings += (_other_layout_finding(layout.body, layout.body_version, other),)
            tracer.message(plan(layout.body, layout.body_version, other), "body", root)
            embedder = TreeEmbedder(sources, records, context)
            embedder.message(layout.body, root.children[-1])
            embedder.records(layout.body, root.children[-1])
            annotate_ids(root, context)
    except LimitError as error:
        root.findings += (over_limit(error, stop - tracer.at),)
    except WireError as error:
        root.findings += _malformed(
            error, tracer.last_path(root), layout, (len(data) if end is None else end) - tracer.at
        )
    else:
        if layout.body is not None and tracer.at < stop:
            root.findings += (_trailing_bytes_finding(stop - tracer.at, tracer.at),)
    for start, rest_end in ((tracer.at, stop), (stop, len(data))):
        if start < rest_end:
            rest = Node("(rest)", "(rest)", UNPARSED, start, rest_end, data[start:rest_end])
            if layout.masked_from is not None and start >= layout.masked_from:
                rest.note = MASKED
            root.add(rest)
    root.end = len(data)
    return Traced(root, sources, [f for node in root.walk() if node.findings for f in _findings_with_paths(node)])


def _malformed(error: WireError, path: str, layout: MessageLayout, unread: int) -> tuple[Finding, ...]:
    """The finding about bytes that don't fit; none of masked ones, as reading ends before what the layout's own finding
    is about."""
    if layout.masked_from is not None:
        return ()
    words = f"{error}, at offset {error.at:,}; {counted(unread, 'byte')} could not be read"
    return (Finding("malformed", Severity.ERROR, words, path),)


def _findings_with_paths(node: Node) -> list[Finding]:
    """Yield a node's findings, each with a path."""
    return [f if f.path or not node.path else f.under(node.path) for f in node.findings]

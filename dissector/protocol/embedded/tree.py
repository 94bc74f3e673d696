"""Adds the contents of bytes fields to a message's tree.

A bytes field of a known format gets children: its length, the prefix, the messages. They tile the field, as all leaves
do. A field of another format stays a leaf.
"""

from collections.abc import Iterator

from dissector.protocol.codec.tracer import Tracer
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.embedded.formats import FORMATS, match_format
from dissector.protocol.embedded.messages import EmbeddedMessages, Scope, embedded_plan
from dissector.protocol.embedded.sasl import sasl_token
from dissector.protocol.embedded.secrets import (
    SECRET_FIELDS,
    is_metadata_log,
    mark_secret,
    seal,
    seal_batch,
    seal_unread,
)
from dissector.protocol.embedded.subtree import Subtree, SubtreeItem
from dissector.protocol.embedded.topics import (
    CLUSTER_METADATA,
    INTERNAL_TOPICS,
    RECORDS_FIELDS,
    RecordFormat,
    control_record,
)
from dissector.protocol.embedded.values import topic_of
from dissector.protocol.records.batch import CONTROL
from dissector.protocol.records.compression import codec_name
from dissector.protocol.records.tracing import RecordTracer, over_limit
from dissector.protocol.tree import ByteSource, CompressedSpan, Node
from dissector.protocol.wire import LimitError

Chain = tuple[Node, ...]


class TreeEmbedder:
    """Adds embedded formats to the tree of one frame."""

    def __init__(self, sources: list[ByteSource], records: RecordTracer, context: DecodingContext) -> None:
        self._sources = sources
        self._records = records
        self._context = context

    def message(self, message: str, node: Node, outer: Chain = ()) -> None:
        """Decode the bytes fields of a message, whose structure is `node`, and mark its secrets."""
        for path in SECRET_FIELDS.get(message, ()):
            for leaf, chain in reach(node, path.split("."), (*outer, node)):
                mark_secret(leaf, chain)
        for path in FORMATS.get(message, ()):
            for leaf, chain in reach(node, path.split("."), (*outer, node)):
                if isinstance(leaf.value, bytes) and not leaf.children:
                    self._open_if_known(leaf, leaf.value, message, path, chain)
        seal_unread(message, node)

    def records(self, message: str, body: Node) -> None:
        """Decode the records of internal topics, and control records."""
        path = RECORDS_FIELDS.get(message)
        if path is None:
            return
        for node, chain in reach(body, path.split("."), (body,)):
            topic = topic_of({each.name: each.value for each in chain[1].children}, self._context)
            topic_id = next((each.value for each in chain[1].children if each.name == "topic_id"), None)
            is_metadata = self._context.fetches_metadata or message == "FetchSnapshotResponse"
            is_metadata = is_metadata or is_metadata_log(topic, topic_id)
            self.batches(node, CLUSTER_METADATA if is_metadata else topic)

    def batches(self, node: Node, topic: str | None) -> None:
        """Decode the records of the batches under `node`, which are of that topic."""
        of_topic = INTERNAL_TOPICS.get(topic or "")
        for batch in node.children:
            attributes = _child(batch, "attributes")
            is_control = attributes is not None and isinstance(attributes.value, int) and attributes.value & CONTROL
            form = control_record if is_control else of_topic
            if form is not None and batch.type == "RECORD_BATCH":
                self._batch(batch, form)
            if topic == CLUSTER_METADATA:
                seal_batch(batch)

    def _batch(self, batch: Node, form: RecordFormat) -> None:
        records = _child(batch, "records")
        for record in records.children if records is not None else ():
            key, value = _child(record, "key"), _child(record, "value")
            if key is not None and value is not None:
                found = form(_bytes(key), _bytes(value))
                self._open_if_read(key, found.key)
                self._open_if_read(value, found.value)

    def _open_if_known(self, leaf: Node, raw: bytes, message: str, path: str, chain: Chain) -> None:
        try:
            found = match_format(message, path, raw, _scope(chain), self._context)
        except LimitError as error:
            leaf.findings += (over_limit(error, len(raw)),)
            return
        if found is not None:
            self._open(leaf, found, chain)

    def _open_if_read(self, leaf: Node, found: EmbeddedMessages | None) -> None:
        raw = _bytes(leaf)
        if found is not None and raw is not None and found.read(raw) is not None:
            self._open(leaf, found, ())

    def token(self, leaf: Node) -> None:
        """Decode a raw SASL token, after SaslHandshake version 0."""
        found = sasl_token(leaf.value, self._context.mechanism) if isinstance(leaf.value, bytes) else None
        if found is not None:
            self._add_subtree(found, leaf)
        else:
            seal(leaf)

    def _open(self, leaf: Node, found: EmbeddedMessages | Subtree, chain: Chain) -> None:
        """Turn a leaf into a node with its contents as children."""
        raw = leaf.value
        assert isinstance(raw, bytes)
        if isinstance(found, Subtree):
            self._add_subtree(found, leaf)
            return
        data = self._sources[leaf.source].data
        start = leaf.end - len(raw)
        tracer = Tracer(data, start, leaf.end, self._records, source=leaf.source)
        _add_size(leaf, start)
        try:
            for name, kind in found.prefix:
                tracer.primitive(leaf, name, kind)
            for each in found.messages:
                tracer.message(embedded_plan(each.message, each.version, each.count), each.name, leaf)
                child = leaf.children[-1]
                child.note = f"{each.message} v{each.version}"
                if each.missing:
                    child.note += f", ends before {', '.join(each.missing)}"
                self.message(each.message, child, chain)
        except LimitError as error:
            leaf.findings += (over_limit(error, leaf.end - tracer.at),)
        tracer.rest(leaf)

    def _add_subtree(self, found: Subtree, leaf: Node) -> None:
        """Add a subtree, in a new source if it was compressed."""
        assert isinstance(leaf.value, bytes)
        start = leaf.end - len(leaf.value)
        try:
            self._records.budget.admit_nodes(found.count(), start)
        except LimitError as error:
            leaf.findings += (over_limit(error, len(leaf.value)),)
            return
        _add_size(leaf, start)
        leaf.note = found.name
        if found.plain is None:
            _add_items(found.items, leaf, start)
            return
        codec = codec_name(found.codec)
        note = f"{codec}, {len(leaf.value):,} bytes hold {len(found.plain):,}"
        content = Node("(compressed)", leaf.path_of("(compressed)"), "BYTES", start, leaf.end, leaf.value, note)
        content.source = leaf.source
        leaf.add(content)
        packed = CompressedSpan(leaf.source, start, leaf.end, found.codec)
        source = ByteSource(len(self._sources), f"{leaf.path} {codec}, decompressed", found.plain, packed)
        self._sources.append(source)
        holder = Node(found.name, leaf.path_of(found.name), "MESSAGE", 0, len(found.plain), source=source.number)
        leaf.add(holder)
        _add_items(found.items, holder, 0)


def _add_size(leaf: Node, start: int) -> None:
    """Add the length before the content, which begins at `start`."""
    if leaf.start < start:
        size = Node("(size)", leaf.path_of("(size)"), "LENGTH", leaf.start, start, source=leaf.source)
        size.value = leaf.end - start
        leaf.add(size)


def _add_items(items: tuple[SubtreeItem, ...], parent: Node, start: int) -> None:
    for item in items:
        node = Node(item.name, parent.path_of(item.name), item.kind, start + item.start, start + item.end, item.value)
        node.note, node.source = item.note, parent.source
        node.secret = (start + item.secret[0], start + item.secret[1]) if item.secret else None
        if item.items and item.start < item.items[0].start:
            head = Node("(head)", node.path_of("(head)"), "BYTES", node.start, start + item.items[0].start)
            head.source = parent.source
            node.add(head)
        _add_items(item.items, node, start)
        parent.add(node)


def _bytes(leaf: Node) -> bytes | None:
    return leaf.value if isinstance(leaf.value, bytes) else None


def _child(node: Node, name: str) -> Node | None:
    return next((each for each in node.children if each.name == name), None)


def reach(node: Node, names: list[str], chain: Chain) -> Iterator[tuple[Node, Chain]]:
    """Yield the nodes at a path, through the elements of arrays, each with its enclosing structures."""
    found = _child(node, names[0])
    if found is None:
        return
    if len(names) == 1:
        yield found, chain
    elif found.type.endswith("ARRAY"):
        for element in found.children:
            if element.name.startswith("["):
                yield from reach(element, names[1:], (*chain, element))
    else:
        yield from reach(found, names[1:], (*chain, found))


def _scope(chain: Chain) -> Scope:
    def nearest(name: str) -> object:
        for node in reversed(chain):
            found = _child(node, name)
            if found is not None and found.value is not None:
                return found.value
        return None

    return nearest

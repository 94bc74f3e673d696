"""A frame without what it says: as long as it was, laid out as it was, its checksums right where they were right.

Worked out on the frame's tree. Leaves keep their place: numbers and ids stay; strings are replaced (`kept`, `names`);
bytes become asterisks; what no field explains becomes zeros. Sources are done from the innermost on, as a section is
packed again once all in it is replaced. A section that does not go into its place becomes zeros, and reads as damaged.
"""

import re
import zlib
from collections import defaultdict
from typing import Final

import google_crc32c

from dissector.export.redaction.addresses import AddressPseudonyms
from dissector.export.redaction.allowed_words import is_allowed, pseudonym_prefix
from dissector.export.redaction.compress_to_size import Span, compress_to_size
from dissector.export.redaction.pseudonyms import MASK, Pseudonyms
from dissector.export.redaction.sasl_tokens import redacted_token
from dissector.protocol.embedded.sasl import sasl_token
from dissector.protocol.message import AUTH_BYTES, Traced
from dissector.protocol.records.log_entries import LOG_OVERHEAD, MAGIC_AT
from dissector.protocol.tree import UNPARSED, ByteSource, Node

_IPV4: Final = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")
_SIZE_AT: Final = 8
_NO_WORDS: Final = frozenset(("UUID", "LENGTH"))
"""Leaves whose value is text for people alone."""


class Redactor:
    """Redacts the frames of one capture. What it has replaced stays replaced by the same."""

    def __init__(self) -> None:
        self.names = Pseudonyms()
        self.addresses = AddressPseudonyms()
        self.lost = 0
        """Compressed sections that had to become zeros."""

    def frame(self, traced: Traced) -> bytes:
        """The frame's bytes, as many as its first source has."""
        plain = [bytearray(source.data) for source in traced.sources]
        leaves: defaultdict[int, list[Node]] = defaultdict(list)
        summed: defaultdict[int, list[Node]] = defaultdict(list)
        opened = {(source.compressed.source, source.compressed.start) for source in traced.sources if source.compressed}
        for node in _walk(traced.tree):
            if node.type in ("RECORD_BATCH", "MESSAGE") and node.children:
                summed[node.source].append(node)
            if _is_leaf(node) and (node.source, node.start) not in opened:
                leaves[node.source].append(node)
        free: defaultdict[int, list[Span]] = defaultdict(list)
        for source in reversed(traced.sources):
            out = plain[source.number]
            for leaf in leaves[source.number]:
                self._replace(leaf, out, free[source.number])
            for node in summed[source.number]:
                _mend(node, source.data, out)
            if source.compressed is not None:
                self._pack(source, bytes(out), free[source.number], plain[source.compressed.source])
        return bytes(plain[0])

    def _replace(self, leaf: Node, out: bytearray, free: list[Span]) -> None:
        """Put something else in place of a leaf's content, which ends where the leaf does."""
        if leaf.type == UNPARSED:
            out[leaf.start : leaf.end] = _unread(leaf)
        elif leaf.name == AUTH_BYTES and isinstance(leaf.value, bytes):
            token = sasl_token(leaf.value, leaf.note or None)
            made = redacted_token(leaf.value, token.name, self.names) if token else MASK * len(leaf.value)
            out[leaf.end - len(made) : leaf.end] = made
        elif isinstance(leaf.value, bytes):
            start = leaf.end - len(leaf.value)
            out[start : leaf.end] = MASK * len(leaf.value)
            free.append((start, leaf.end))
        elif isinstance(leaf.value, str) and leaf.value and leaf.type not in _NO_WORDS:
            made = self.text(leaf, leaf.value)
            out[leaf.end - len(made) : leaf.end] = made

    def text(self, leaf: Node, text: str) -> bytes:
        """What stands in place of a string, of the same size in UTF-8."""
        raw = text.encode("utf-8", "surrogateescape")
        if is_allowed(leaf, text):
            return raw
        word = pseudonym_prefix(leaf)
        if word == "host" and _IPV4.search(text):
            return _IPV4.sub(self._address, text).encode("utf-8", "surrogateescape")
        return self.names.of(raw, word)

    def _address(self, found: re.Match[str]) -> str:
        try:
            return self.addresses.of(found[0])
        except ValueError:  # 999.1.1.1
            return self.names.of(found[0].encode(), "host").decode()

    def _pack(self, source: ByteSource, content: bytes, free: list[Span], outer: bytearray) -> None:
        """Put a section's content back where it was compressed."""
        assert source.compressed is not None
        _, start, end, codec = source.compressed
        made = compress_to_size(codec, content, bytes(outer[start:end]), free)
        self.lost += made is None
        outer[start:end] = bytes(end - start) if made is None else made


def _walk(tree: Node) -> list[Node]:
    """All nodes, but a login's token as one leaf: what it consists of is told by its mechanism alone."""
    nodes, stack = [], [tree]
    while stack:
        node = stack.pop()
        nodes.append(node)
        if node.name != AUTH_BYTES:
            stack += reversed(node.children)
    return nodes


def _is_leaf(node: Node) -> bool:
    return node.name == AUTH_BYTES or not any(child.source == node.source for child in node.children)


def _unread(leaf: Node) -> bytes:
    """Zeros for what could not be read; of a batch that a fetch cut off, what says that it was."""
    size = leaf.end - leaf.start
    data = leaf.value
    if not leaf.note.startswith("truncated") or not isinstance(data, bytes) or size <= MAGIC_AT:
        return bytes(size)
    length, magic = data[_SIZE_AT:LOG_OVERHEAD], data[MAGIC_AT : MAGIC_AT + 1]
    head = bytes(_SIZE_AT) + length + bytes(MAGIC_AT - LOG_OVERHEAD) + magic
    return head.ljust(size, b"\x00")


def _mend(node: Node, data: bytes, out: bytearray) -> None:
    """Make the checksum of a batch or a message right, if it was; it covers all that is behind it."""
    crc = next((child for child in node.children if child.name == "crc"), None)
    if crc is None:
        return
    checksum = google_crc32c.value if node.type == "RECORD_BATCH" else zlib.crc32
    if checksum(data[crc.end : node.end]) == crc.value:
        out[crc.start : crc.end] = checksum(bytes(out[crc.end : node.end])).to_bytes(4, "big")

"""Redacts a frame: same size, same layout, and valid checksums if they were valid.

It follows the frame's tree. Leaves keep their place: numbers and ids stay; strings are replaced (`allowed_words`,
`pseudonyms`); bytes become asterisks; unparsed bytes become zeros. Sources are redacted from the innermost outwards, as
a section is compressed again after its content is replaced. A section that does not fit becomes zeros, and is damaged.
"""

import re
import zlib
from collections import defaultdict
from contextlib import suppress
from typing import Final

import google_crc32c

from dissector.export.redaction.addresses import AddressPseudonyms
from dissector.export.redaction.allowed_words import is_allowed, pseudonym_prefix
from dissector.export.redaction.compress_to_size import Span, compress_to_size
from dissector.export.redaction.pseudonyms import MASK, Pseudonyms
from dissector.export.redaction.sasl_tokens import redacted_token
from dissector.protocol.embedded.sasl import sasl_token
from dissector.protocol.message import AUTH_BYTES, Traced
from dissector.protocol.records.entries import LOG_OVERHEAD, MAGIC_AT
from dissector.protocol.tree import UNPARSED, ByteSource, Node

_ADDRESS: Final = re.compile(r"(/?)(\d{1,3}(?:\.\d{1,3}){3})", re.ASCII)
"""An IPv4 address as a host, perhaps as Java prints one. An address in a longer name is a part of that name."""
_SIZE_AT: Final = 8
_NO_WORDS: Final = frozenset(("UUID", "LENGTH"))
"""Leaves whose value is text only for display."""


class Redactor:
    """Redacts the frames of one capture, with the same pseudonyms in all of them."""

    def __init__(self) -> None:
        self.names = Pseudonyms()
        self.addresses = AddressPseudonyms()
        self.lost = 0
        """Compressed sections that had to become zeros."""

    def frame(self, traced: Traced) -> bytes:
        """Return the redacted frame, of the size of its first source."""
        plain = [bytearray(source.data) for source in traced.sources]
        leaves: defaultdict[int, list[Node]] = defaultdict(list)
        checksummed: defaultdict[int, list[Node]] = defaultdict(list)
        opened = {(source.compressed.source, source.compressed.start) for source in traced.sources if source.compressed}
        for node in _walk(traced.tree):
            if node.type in ("RECORD_BATCH", "MESSAGE") and node.children:
                checksummed[node.source].append(node)
            if _is_leaf(node) and (node.source, node.start) not in opened:
                leaves[node.source].append(node)
        free: defaultdict[int, list[Span]] = defaultdict(list)
        for source in reversed(traced.sources):
            out = plain[source.number]
            for leaf in leaves[source.number]:
                self._replace(leaf, out, free[source.number])
            for node in checksummed[source.number]:
                _update_checksum(node, source.data, out)
            if source.compressed is not None:
                self._pack(source, bytes(out), free[source.number], plain[source.compressed.source])
        return bytes(plain[0])

    def _replace(self, leaf: Node, out: bytearray, free: list[Span]) -> None:
        """Replace a leaf's content, which ends where the leaf ends."""
        if leaf.type == UNPARSED:
            out[leaf.start : leaf.end] = _redact_unparsed(leaf)
        elif leaf.name == AUTH_BYTES and isinstance(leaf.value, bytes):
            token = sasl_token(leaf.value, leaf.note or None)
            redacted = redacted_token(leaf.value, token.name, self.names) if token else MASK * len(leaf.value)
            out[leaf.end - len(redacted) : leaf.end] = redacted
        elif isinstance(leaf.value, bytes):
            start = leaf.end - len(leaf.value)
            out[start : leaf.end] = MASK * len(leaf.value)
            free.append((start, leaf.end))
        elif isinstance(leaf.value, str) and leaf.value and leaf.type not in _NO_WORDS:
            redacted = self.text(leaf, leaf.value)
            out[leaf.end - len(redacted) : leaf.end] = redacted

    def text(self, leaf: Node, text: str) -> bytes:
        """Return the replacement of a string, of the same size in UTF-8."""
        raw = text.encode("utf-8", "surrogateescape")
        if is_allowed(leaf, text):
            return raw
        word = pseudonym_prefix(leaf)
        if word == "host" and (found := _ADDRESS.fullmatch(text)):
            with suppress(ValueError):  # 999.1.1.1
                return (found[1] + self.addresses.of(found[2])).encode()
        return self.names.of(raw, word)

    def _pack(self, source: ByteSource, content: bytes, free: list[Span], outer: bytearray) -> None:
        """Compress a section's content into its place."""
        assert source.compressed is not None
        _, start, end, codec = source.compressed
        packed = compress_to_size(codec, content, bytes(outer[start:end]), free)
        self.lost += packed is None
        outer[start:end] = bytes(end - start) if packed is None else packed


def _walk(tree: Node) -> list[Node]:
    """Return all nodes, a SASL token as one leaf: only its mechanism knows its parts."""
    nodes, stack = [], [tree]
    while stack:
        node = stack.pop()
        nodes.append(node)
        if node.name != AUTH_BYTES:
            stack += reversed(node.children)
    return nodes


def _is_leaf(node: Node) -> bool:
    return node.name == AUTH_BYTES or not any(child.source == node.source for child in node.children)


def _redact_unparsed(leaf: Node) -> bytes:
    """Return zeros for unparsed bytes; a batch that a Fetch truncated keeps its length and magic."""
    size = leaf.end - leaf.start
    data = leaf.value
    if not leaf.note.startswith("truncated") or not isinstance(data, bytes) or size <= MAGIC_AT:
        return bytes(size)
    length, magic = data[_SIZE_AT:LOG_OVERHEAD], data[MAGIC_AT : MAGIC_AT + 1]
    head = bytes(_SIZE_AT) + length + bytes(MAGIC_AT - LOG_OVERHEAD) + magic
    return head.ljust(size, b"\x00")


def _update_checksum(node: Node, data: bytes, out: bytearray) -> None:
    """Update the checksum of a batch or a message if it was valid; it covers all bytes after it."""
    crc = next((child for child in node.children if child.name == "crc"), None)
    if crc is None:
        return
    checksum = google_crc32c.value if node.type == "RECORD_BATCH" else zlib.crc32
    if checksum(data[crc.end : node.end]) == crc.value:
        out[crc.start : crc.end] = checksum(bytes(out[crc.end : node.end])).to_bytes(4, "big")

"""Redacts a frame: same size, same layout, and valid checksums if they were valid.

It follows the frame's tree. Leaves keep their place: numbers and ids stay; strings are replaced (`allowed_words`,
`pseudonyms`); bytes become asterisks; unparsed bytes become zeros. Sources are redacted from the innermost outwards, as
a section is compressed again after its content is replaced. A section that does not fit becomes zeros, and is damaged.

What is damaged says nothing of where its names are. So a frame that is malformed, cut or has surplus bytes keeps its
header alone, and of a section of records or another format within a frame nothing is kept but its size. The bytes in
place of a body are such as have the same finding, if there are some. Of what reads well, numbers with pieces of names
change (`remnants`).
"""

import re
import zlib
from bisect import bisect_right
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

import google_crc32c

from dissector.core.finding import Finding
from dissector.exchange.model import ExchangeMessage
from dissector.export.redaction.allowed_words import is_allowed, pseudonym_prefix
from dissector.export.redaction.pseudonyms import MASK, AddressPseudonyms, Pseudonyms
from dissector.export.redaction.remnants import PIECE, RUN, Remnants
from dissector.export.redaction.sasl_tokens import redacted_token
from dissector.protocol.embedded.sasl import sasl_token
from dissector.protocol.message import AUTH_BYTES, Traced, read, trace
from dissector.protocol.message_layout import PREFIX, MessageLayout
from dissector.protocol.records.compress_to_size import Span, compress_to_size
from dissector.protocol.records.entries import LOG_OVERHEAD, MAGIC_AT
from dissector.protocol.tree import UNPARSED, ByteSource, Node

_ADDRESS: Final = re.compile(r"(/?)(\d{1,3}(?:\.\d{1,3}){3})", re.ASCII)
"""An IPv4 address as a host, perhaps as Java prints one. An address in a longer name is a part of that name."""
_SIZE_AT: Final = 8
_NO_WORDS: Final = frozenset(("UUID", "LENGTH"))
"""Leaves whose value is text only for display."""
_NUMBERS: Final = frozenset(("INT8", "INT16", "INT32", "INT64", "UINT16", "UINT32", "FLOAT64", "UUID"))
_STRUCTURAL: Final = frozenset(
    ("size", "request_api_key", "request_api_version", "batch_length", "message_size", "magic", "attributes",
     "last_offset_delta", "records_count")
)  # fmt: skip
"""Numbers that the layout depends on, or what is made of them."""
_DAMAGE: Final = frozenset(("malformed", "trailing-bytes", "over-limit"))
_FILLS: Final = (b"\x00", b"\xff", b"\x7f", b"\x80", b"*")
"""What may stand in place of a damaged body: counts and lengths of no, null and too many elements."""


class Redactor:
    """Redacts the frames of one capture, with the same pseudonyms in all of them."""

    def __init__(self) -> None:
        self.names = Pseudonyms()
        self.addresses = AddressPseudonyms()
        self.remnants = Remnants()
        self.lost = 0
        """Compressed sections that had to become zeros."""

    def learn(self, message: ExchangeMessage) -> None:
        """Learn the names in a message, before the first one is redacted."""
        self.remnants.learn(message.with_mask().traced)

    def message(self, message: ExchangeMessage, *, is_doubtful: bool = False) -> bytes:
        """Return the redacted frame of a message, as many bytes of it as can be read. One that `is_doubtful` counts as
        damaged, though it can be read."""
        shown = message.with_mask()
        if (damage := self.damage(shown, is_doubtful=is_doubtful)) is not None:
            return self.damaged(shown.data, damage, message.whole)
        # Where the layout is a guess, or unknown, any number may be a name.
        run = PIECE if shown.layout.findings or shown.layout.unread is not None else RUN
        return self.frame(shown.traced, run)[: message.whole]

    def damage(self, shown: ExchangeMessage, *, is_doubtful: bool = False) -> "FrameDamage | None":
        """Return what to make of a message that can't be read from end to end, or `is_doubtful`; None for any other."""
        kept = _header_end(shown.traced) if is_doubtful else _header_end_if_damaged(shown.traced)
        if kept is None:
            return None
        fill = b"" if shown.layout.body is None else _fill_like(shown, kept)
        return FrameDamage(shown.layout._replace(body=None), kept, fill)

    def damaged(self, data: bytes, damage: "FrameDamage", whole: int) -> bytes:
        """Return the redacted frame of a damaged message, as many bytes of it as can be read."""
        made = self._header(trace(data, damage.layout, whole))
        if damage.fill:
            made = made[: damage.kept] + damage.fill * (len(data) - damage.kept)
        return made[:whole]

    def frame(self, traced: Traced, run: int = RUN) -> bytes:
        """Return the redacted frame, of the size of its first source. So many letters in a row are a name."""
        made = self._redacted(traced, run) if _header_end_if_damaged(traced) is None else None
        return self._header(traced) if made is None else _with_size(made, traced)

    def _header(self, traced: Traced) -> bytes:
        """Return the redacted frame with nothing but its header."""
        made = self._redacted(_without_body(traced), PIECE)
        # what should be its header may be a name
        return _with_size(bytes(len(traced.sources[0].data)) if made is None else made, traced)

    def _redacted(self, traced: Traced, run: int) -> bytes | None:
        """Redact a tree; None if a name is where a length is. So many letters in a row are a name."""
        parts = [_SourcePart(source) for source in traced.sources]
        damaged: list[Node] = []
        opened = {(source.compressed.source, source.compressed.start) for source in traced.sources if source.compressed}
        for node in _walk(traced.tree):
            if node.type in ("RECORD_BATCH", "MESSAGE") and node.children:
                parts[node.source].checksummed.append(node)
            if _is_leaf(node) and (node.source, node.start) not in opened:
                parts[node.source].leaves.append(node)
            if node.path and any(_is_rest(child) for child in node.children):
                damaged.append(node)
        run = PIECE if damaged else run  # what is ahead of the damage may be of a name as well
        for part in reversed(parts):
            for leaf in part.leaves:
                self._replace(leaf, part)
            for node in damaged:
                if node.source == part.source.number:
                    _clear(node, part)
            if not self._without_remnants(part, run):
                return None
            for node in part.checksummed:
                _update_checksum(node, part.source.data, part.out)
            if part.source.compressed is not None:
                self._pack(part, parts[part.source.compressed.source])
        return bytes(parts[0].out)

    def _replace(self, leaf: Node, part: "_SourcePart") -> None:
        """Replace a leaf's content, which ends where the leaf ends."""
        if leaf.type == UNPARSED:
            part.put(leaf.end, _redact_unparsed(leaf), stays=_is_cut_batch(leaf))
        elif leaf.name == AUTH_BYTES and isinstance(leaf.value, bytes):
            token = sasl_token(leaf.value, leaf.note or None)
            redacted = redacted_token(leaf.value, token.name, self.names) if token else MASK * len(leaf.value)
            part.put(leaf.end, redacted)
        elif isinstance(leaf.value, bytes):
            part.put(leaf.end, MASK * len(leaf.value))
            part.free.append((leaf.end - len(leaf.value), leaf.end))
        elif isinstance(leaf.value, str) and leaf.value and leaf.type not in _NO_WORDS:
            part.put(leaf.end, self.text(leaf, leaf.value))

    def _without_remnants(self, part: "_SourcePart", run: int) -> bool:
        """Change numbers that have pieces of names; the same number becomes the same other. False if there is a piece
        of none but lengths. What stays and makes a piece with a replacement beside it, as a damaged id may, loses the
        replacement."""
        found = list(self.remnants.find(bytes(part.kept), run))
        if found and run != PIECE:  # names are where numbers should be, perhaps such as no other frame has
            found = list(self.remnants.find(bytes(part.kept), PIECE))
        changed = -1
        for start, end in found:
            if start <= changed < end:
                continue
            at = next((at for at in range(end - 1, start - 1, -1) if part.is_number(at)), None)
            if at is None:
                return False
            part.out[at] ^= 0x80
            changed = at
        for start, end in self.remnants.pieces(bytes(part.out)):
            if any(part.kept[start:end]):
                part.mask(start, end)
        return True

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

    def _pack(self, part: "_SourcePart", outer: "_SourcePart") -> None:
        """Compress a section's content into its place."""
        assert part.source.compressed is not None
        _, start, end, codec = part.source.compressed
        packed = compress_to_size(codec, bytes(part.out), bytes(outer.out[start:end]), part.free)
        self.lost += packed is None
        outer.put(end, bytes(end - start) if packed is None else packed)


class FrameDamage(NamedTuple):
    """What is known of a damaged message once it was read, and all that its redaction takes."""

    layout: MessageLayout
    """That of its header."""
    kept: int
    """Where its header ends, of which something is kept."""
    fill: bytes
    """What stands for each byte of its body; none if it becomes zeros."""


class _SourcePart:
    """One source while it is redacted."""

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.out = bytearray(source.data)
        self.kept = bytearray(source.data)
        """The bytes that are still the original's; 0 in place of the others."""
        self.leaves: list[Node] = []
        """In order: they tile the source, but for compressed ones."""
        self.checksummed: list[Node] = []
        self.free: list[Span] = []
        """What may be any bytes of the same number."""

    def put(self, end: int, content: bytes, *, stays: bool = False) -> None:
        """Replace the bytes before `end`."""
        self.out[end - len(content) : end] = content
        self.kept[end - len(content) : end] = content if stays else bytes(len(content))

    def mask(self, start: int, end: int) -> None:
        """Put asterisks in place of the replacements there."""
        for at in range(start, end):
            if not self.kept[at]:
                self.out[at : at + 1] = MASK

    def is_number(self, at: int) -> bool:
        """Whether a byte is of a number that no length depends on."""
        leaf = self.leaves[max(0, bisect_right(self.leaves, at, key=lambda leaf: leaf.start) - 1)]
        return leaf.type in _NUMBERS and leaf.name not in _STRUCTURAL and not leaf.name.startswith("(")


def _header_end_if_damaged(traced: Traced) -> int | None:
    """Return where the header of a frame ends that can't be read from end to end; None for any other."""
    data, children = traced.sources[0].data, traced.tree.children
    is_damaged = not _has_its_size(data) or _damage_codes(traced.tree.findings) or any(map(_is_rest, children))
    return _header_end(traced) if is_damaged else None


def _header_end(traced: Traced) -> int | None:
    """Return where the header of a frame ends, without tagged fields; None where it has none."""
    return next((_without_tags(node).end for node in traced.tree.children if node.name == "header"), None)


def _with_size(made: bytes, traced: Traced) -> bytes:
    """Return a redacted frame with its size as it is, if that is right."""
    data = traced.sources[0].data
    return data[:PREFIX] + made[PREFIX:] if _has_its_size(data) else made


def _has_its_size(data: bytes) -> bool:
    return int.from_bytes(data[:PREFIX], "big") == len(data) - PREFIX


def _without_body(traced: Traced) -> Traced:
    """Return the tree of a frame with all that is behind its header as one leaf."""
    source = traced.sources[0]
    children = [_without_tags(node) for node in traced.tree.children if node.name in ("size", "header")]
    start, end = max((node.end for node in children), default=0), len(source.data)
    children.append(Node("(rest)", "(rest)", UNPARSED, start, end, source.data[start:]))
    return Traced(replace(traced.tree, children=children, findings=()), [source], [])


def _without_tags(header: Node) -> Node:
    """Return a header up to its tagged fields, if it has any: Kafka has defined none, so that they are of a name."""
    fields = list(header.children)
    at = next((at for at, each in enumerate(fields) if each.name == "(tagged fields)" and each.value), None)
    return header if at is None else replace(header, children=fields[:at], end=fields[at].start)


def _fill_like(shown: ExchangeMessage, kept: int) -> bytes:
    """Return the byte that in place of a message's body has the same damage; none if no such byte is known."""
    codes, layout = _damage_codes(shown.findings), shown.layout._replace(masked_from=None)
    head, size = shown.data[:kept], len(shown.data) - kept
    fits = (fill for fill in _FILLS if _damage_codes(read(head + fill * size, layout, shown.whole).findings) == codes)
    return next(fits, b"")


def _damage_codes(findings: Iterable[Finding]) -> set[str]:
    return {finding.code for finding in findings} & _DAMAGE


def _is_rest(node: Node) -> bool:
    return node.type == UNPARSED and node.name == "(rest)"


def _clear(node: Node, part: _SourcePart) -> None:
    """Replace all of a damaged format, but for its size."""
    start = next((child.end for child in node.children if child.type == "LENGTH"), node.start)
    part.put(node.end, bytes(node.end - start))


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


def _is_cut_batch(leaf: Node) -> bool:
    """Whether unparsed bytes are a batch that a Fetch cut off, as is usual, with its magic."""
    return leaf.note.startswith("truncated") and isinstance(leaf.value, bytes) and leaf.end - leaf.start > MAGIC_AT


def _redact_unparsed(leaf: Node) -> bytes:
    """Return zeros for unparsed bytes; a batch that a Fetch truncated keeps its length and magic."""
    size = leaf.end - leaf.start
    data = leaf.value
    if not _is_cut_batch(leaf) or not isinstance(data, bytes):
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

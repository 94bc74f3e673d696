"""Search for text, bytes or a field: in one message, and in the next rows.

Text is searched in what people read: in strings, bytes and records, decompressed, in field names and in what values
mean (names of enum values, of topics by id); a number of 128 or more is a value, too. Case is ignored, unless the text
has a capital letter. Raw text is searched in the bytes of frames as they are, compressed sections included. Hex bytes
are searched in frames and in decompressed sections. A field is a name, or a path such as ``topics.name``.

A row is decoded only if its bytes, or those of its compressed sections, contain what is searched or, for a name, if its
API may have it.

Invariant: masked secrets are not found; only what a user may see of a row matches.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from dissector.bulk.body_columns import Messages
from dissector.bulk.decompressed_sections import SectionFilter
from dissector.bulk.field_keys import no_column
from dissector.capture_session import Capture
from dissector.core.arrays import Bool, Int64
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.protocol.codec.program import ColumnPlan
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.kernel.shredding import Shredded
from dissector.protocol.schema.enums import enums, members
from dissector.protocol.schema.loader import apis, message
from dissector.protocol.schema.model import Field
from dissector.protocol.tree import UNPARSED, CompressedSpan, Node
from dissector.protocol.wire import uuid_bytes, uvarint_bytes, varlong_bytes

MAX_HITS: Final = 10_000
"""Hits per message at most."""
SIDES: Final = ("request", "response")
_RECORDS: Final = "records"


class SearchError(ValueError):
    """An invalid search; one plain line."""


class SearchKind(StrEnum):
    """What a search is for."""

    TEXT = "text"
    HEX = "hex"
    FIELD = "field"
    RAW = "raw text"


_SEARCHED: Final = {
    SearchKind.TEXT: "decoded values", SearchKind.RAW: "raw bytes", SearchKind.HEX: "raw and decompressed bytes",
    SearchKind.FIELD: "field names",
}  # fmt: skip


class SearchHit(NamedTuple):
    """A match in a message: the field's path from the root, and bytes of one of the message's sources."""

    path: str
    source: int
    start: int
    end: int


@dataclass(frozen=True)
class SearchQuery:
    """What to search for, built by `search_query`."""

    kind: SearchKind
    text: str
    data: bytes
    """As bytes; empty for a field."""
    any_case: bool

    @property
    def searched(self) -> str:
        """What is searched, in words."""
        return _SEARCHED[self.kind]

    def hits(self, message: ExchangeMessage) -> list[SearchHit]:
        """Return the matches in a message, in the order of the tree."""
        order = {node: place for place, node in enumerate(message.tree.walk())}
        found = self._fields(order) if self.kind in (SearchKind.TEXT, SearchKind.FIELD) else {}
        hits = [(order[node], SearchHit(node.path, node.source, node.start, node.end)) for node in found.values()]
        sources = message.sources[:1] if self.kind is SearchKind.RAW else message.sources
        starts = {source.number: list(self._starts(source.data)) for source in sources}
        leaves = message.tree.leaves() if any(starts.values()) else {}
        packed = [each.compressed for each in message.sources if each.compressed is not None]
        for source in sources:
            for node, start in _leaves_at(leaves.get(source.number, []), starts[source.number]):
                end = start + len(self.data)
                if self.kind is not SearchKind.TEXT or _is_read_as_text(node, end, packed):
                    hits.append((order[node], SearchHit(node.path, source.number, start, end)))
        return [hit for _, hit in sorted(set(hits))[:MAX_HITS]]

    def _fields(self, nodes: Iterable[Node]) -> dict[str, Node]:
        """Return the fields whose name, whose value or its meaning matches."""
        by_path = self.kind is SearchKind.FIELD and ("." in self.text or "[" in self.text)
        number = _number(self.text) if self.kind is SearchKind.TEXT else None
        found = {}
        for node in nodes:
            if by_path:
                paths = (node.path, re.sub(r"\[\d+\]", "", node.path))
                has = any(self._is_in(path) for path in paths) and not node.name.startswith(("(", "["))
            else:
                has = self._is_in(node.name) or (
                    self.kind is SearchKind.TEXT
                    and (
                        (bool(node.note) and node.note[0] != '"' and self._is_in(node.note))
                        or (number is not None and node.value == number and not node.name.startswith("("))
                        or (node.type == "UUID" and node.value == self.text)
                    )
                )
            if has and node.path:
                found[node.path] = node
        return found

    def _is_in(self, words: str) -> bool:
        return self.text in (words.lower() if self.any_case else words)

    def _starts(self, data: bytes) -> Iterator[int]:
        """Yield the offsets of the bytes."""
        if not self.data:
            return
        data = data.lower() if self.any_case else data
        at = data.find(self.data)
        for _ in range(MAX_HITS):
            if at < 0:
                return
            yield at
            at = data.find(self.data, at + len(self.data))

    def first(self, capture: Capture, rows: Int64) -> int | None:
        """Return the first of these rows, from 0 and in the given order, with a match; None without one."""
        for number in self._candidates(capture, rows):
            if number < len(capture):
                [exchange] = capture.at(range(number, number + 1))
                if any(hits for _, hits in self.hits_of(exchange)):
                    return number
        return None

    def hits_of(self, exchange: Exchange) -> Iterator[tuple[str, list[SearchHit]]]:
        """Yield the hits of the request and of the response."""
        for side in SIDES:
            found: ExchangeMessage | None = getattr(exchange, side)
            if found is not None:
                yield side, self.hits(found)

    def _candidates(self, capture: Capture, rows: Int64) -> Iterator[int]:
        """Yield the rows that may match."""
        keys = capture.index.numbers(rows).api_key
        may = (keys < 0) | np.isin(keys, np.array(sorted(self._apis()), np.int64))
        if not self.data:
            yield from rows[may].tolist()
            return
        wanted = may & (keys >= 0)
        wanted |= self._are_compressed(capture, rows, ~wanted)
        needles = [self.data, *self._values(capture)]
        for number, is_wanted, frames in zip(
            rows.tolist(), wanted.tolist(), capture.frames.raw_bytes(rows), strict=True
        ):
            if is_wanted or any(self._has_any(frame, needles) for frame in frames):
                yield number

    def _has_any(self, frame: bytes, needles: list[bytes]) -> bool:
        return self._contains(frame) or any(needle in frame for needle in needles[1:])

    def _contains(self, data: bytes) -> bool:
        return self.data in (data.lower() if self.any_case else data)

    def _values(self, capture: Capture) -> Iterator[bytes]:
        """Yield the bytes of values that are read as the text."""
        if self.kind is not SearchKind.TEXT:
            return
        number = _number(self.text)
        if number is not None:
            sizes = [size for size in (2, 4, 8) if number < 1 << 8 * size]
            yield from (number.to_bytes(size, "big") for size in sizes)
            yield varlong_bytes(number)
            if number < 1 << 32:
                yield uvarint_bytes(number)
        for topic_id, name in capture.messages.topic_names.items():
            if self._is_in(name) or topic_id == self.text:
                yield uuid_bytes(topic_id)

    def _are_compressed(self, capture: Capture, rows: Int64, asked: Bool) -> Bool:
        """Which of the rows that are asked for have compressed records that contain it, or may; a row that the kernel
        does not read may."""
        found = np.zeros(len(rows), np.bool_)
        if self.kind is SearchKind.RAW:
            return found
        opened = SectionFilter(lambda plain: plain is None or self._contains(bytes(plain)))
        keys = capture.index.numbers(rows).api_key
        for is_request, carriers in zip((True, False), _records_apis(), strict=True):
            places = np.flatnonzero(asked & np.isin(keys, carriers))
            places = places[np.argsort(rows[places])]  # a list can be sorted by anything
            having = np.zeros(len(places), np.bool_)

            def visit(messages: Messages, part: Shredded, having: Bool = having) -> None:
                for number, column in messages.program.values:
                    if column.type == _RECORDS:
                        fields = part.column(number)
                        some = fields.values > 0
                        of = part.first + fields.rows[some].astype(np.int64)
                        at = messages.frames.addresses[of] + fields.positions[some].astype(np.uint64)
                        having[messages.at[of[opened.of(at, fields.values[some])]]] = True

            numbers = capture.messages.field_keys(no_column, _has_records, is_request=is_request)
            having |= numbers(rows[places], visit) == 0
            found[places] = having
        return found

    def _apis(self) -> frozenset[int]:
        """Return the APIs whose messages may match independent of their bytes."""
        if self.kind in (SearchKind.HEX, SearchKind.RAW):
            return frozenset()
        name = self.text.rpartition(".")[2].partition("[")[0].lower()
        if self.kind is SearchKind.TEXT and name in _number_words():
            return frozenset(each.key for each in apis())
        by_name = frozenset(key for key, names in _names().items() if name in names)
        if self.kind is SearchKind.FIELD and not by_name:  # a field inside of bytes or records
            return frozenset(each.key for each in apis())
        return by_name


def search_query(text: str, kind: SearchKind) -> SearchQuery:
    """Build a query. Raises `SearchError` for empty text and for invalid hex."""
    if not text:
        raise SearchError("nothing to search for")
    if kind is SearchKind.HEX:
        digits = re.sub(r"[\s:]|0x", "", text)
        if not re.fullmatch(r"(?:[0-9a-fA-F]{2})+", digits):
            raise SearchError(f"invalid hex: {text!r}: two digits per byte, such as 00 2a")
        return SearchQuery(kind, text, bytes.fromhex(digits), any_case=False)
    any_case = text == text.lower()
    data = text.encode("utf-8", "surrogateescape") if kind is not SearchKind.FIELD else b""
    return SearchQuery(kind, text, data, any_case)


def _leaves_at(leaves: list[Node], starts: list[int]) -> Iterator[tuple[Node, int]]:
    """Yield the leaf of each offset of a source; offsets ascend."""
    at = 0
    if not starts:
        return
    for leaf in leaves:
        while at < len(starts) and starts[at] < leaf.end:
            yield leaf, starts[at]
            at += 1
        if at == len(starts):
            return


def _is_read_as_text(leaf: Node, end: int, packed: list[CompressedSpan]) -> bool:
    """Whether bytes of a leaf up to `end` are read as text: not if they are compressed, or numbers by accident."""
    is_text = any(kind in leaf.type for kind in ("STRING", "BYTES", UNPARSED))
    is_packed = leaf.name == "(compressed)" or any(
        leaf.source == each.source and leaf.start < each.end and each.start < leaf.end for each in packed
    )
    return is_text and end <= leaf.end and not is_packed


def _number(text: str) -> int | None:
    """The number that a text is, if it is one that takes two bytes or more wherever it is."""
    if not text.isascii() or not text.isdecimal() or not 1 <= len(text) <= 19:
        return None
    number = int(text)
    return number if 1 << 7 <= number < 1 << 63 else None


def _has_records(_api_key: int, column: ColumnPlan) -> bool:
    return column.type == _RECORDS


@cache
def _records_apis() -> tuple[Int64, Int64]:
    """Return the APIs whose requests have records, and those whose responses have."""
    requests = [each.key for each in apis() if each.request in RECORDS_FIELDS]
    responses = [each.key for each in apis() if each.response in RECORDS_FIELDS]
    return np.array(requests, np.int64), np.array(responses, np.int64)


@cache
def _names() -> dict[int, str]:
    """Return the field names of each API's messages as one string, by API key."""
    return {
        each.key: "\n".join(_names_of(message(each.request).fields + message(each.response).fields)) for each in apis()
    }


def _names_of(fields: tuple[Field, ...]) -> Iterator[str]:
    for field in fields:
        yield field.snake_name
        yield from _names_of(field.fields)


@cache
def _number_words() -> str:
    """Return the names of enum values and of header fields as one lower-case string."""
    headers = [*_names_of(message("RequestHeader").fields), *_names_of(message("ResponseHeader").fields)]
    words = [word for enum in enums() for word in members(enum).values()]
    return "\n".join([*words, *headers]).lower()

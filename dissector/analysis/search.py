"""Search for text, bytes or a field: in one message, and in the next rows.

Text is searched in strings, bytes and records, in field names and in the names of enum values; ignoring case, unless it
has a capital letter. Bytes are hex. A field is a name, or a path such as ``topics.name``.

A row is decoded only if its bytes contain the text or, for a name, if its API may have it. So the content of compressed
batches is found in messages that are decoded anyway, and in others only if the query opens records.

Invariant: masked secrets are not found; only what a user may see of a row matches.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.schema.enums import enums, members
from dissector.protocol.schema.loader import apis, message
from dissector.protocol.schema.model import Field
from dissector.protocol.tree import Node

MAX_HITS: Final = 10_000
"""Hits per message at most."""
SIDES: Final = ("request", "response")


class SearchError(ValueError):
    """An invalid search; one plain line."""


class SearchKind(StrEnum):
    """What a search is for."""

    TEXT = "text"
    HEX = "hex"
    FIELD = "field"


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
    opens_records: bool
    """Whether all compressed records are searched."""

    def hits(self, message: ExchangeMessage) -> list[SearchHit]:
        """Return the matches in a message, in the order of the tree."""
        found = self._fields(message.tree) if self.kind is not SearchKind.HEX else {}
        order = {node: place for place, node in enumerate(message.tree.walk())}
        hits = [(order[node], SearchHit(node.path, node.source, node.start, node.end)) for node in found.values()]
        starts = {source.number: list(self._starts(source.data)) for source in message.sources}
        leaves = message.tree.leaves() if any(starts.values()) else {}
        for source in message.sources:
            for node, start in _leaves_at(leaves.get(source.number, []), starts[source.number]):
                hits.append((order[node], SearchHit(node.path, source.number, start, start + len(self.data))))
        return [hit for _, hit in sorted(hits)[:MAX_HITS]]

    def _fields(self, tree: Node) -> dict[str, Node]:
        """Return the fields whose name, or whose value's name, matches."""
        by_path = self.kind is SearchKind.FIELD and ("." in self.text or "[" in self.text)
        found = {}
        for node in tree.walk():
            if by_path:
                paths = (node.path, re.sub(r"\[\d+\]", "", node.path))
                has = any(self._is_in(path) for path in paths) and not node.name.startswith(("(", "["))
            else:
                has = self._is_in(node.name) or (
                    self.kind is SearchKind.TEXT and bool(node.note) and self._is_in(node.note)
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
        for number, wanted, frames in zip(
            rows.tolist(), (may & (keys >= 0)).tolist(), capture.frames.raw_bytes(rows), strict=True
        ):
            if wanted or any(self.data in (frame.lower() if self.any_case else frame) for frame in frames):
                yield number

    def _apis(self) -> frozenset[int]:
        """Return the APIs whose messages may match independent of their bytes."""
        keys = _records_apis() if self.opens_records else frozenset[int]()
        if self.kind is SearchKind.HEX:
            return keys
        name = self.text.rpartition(".")[2].partition("[")[0].lower()
        if self.kind is SearchKind.TEXT and name in _number_words():
            return frozenset(each.key for each in apis())
        by_name = frozenset(key for key, names in _names().items() if name in names)
        if self.kind is SearchKind.FIELD and not by_name:  # a field inside of bytes or records
            return frozenset(each.key for each in apis())
        return keys | by_name


def search_query(text: str, kind: SearchKind, *, opens_records: bool = False) -> SearchQuery:
    """Build a query. Raises `SearchError` for empty text and for invalid hex."""
    if not text:
        raise SearchError("nothing to search for")
    if kind is SearchKind.HEX:
        digits = re.sub(r"[\s:]|0x", "", text)
        if not re.fullmatch(r"(?:[0-9a-fA-F]{2})+", digits):
            raise SearchError(f"invalid hex: {text!r}: two digits per byte, such as 00 2a")
        return SearchQuery(kind, text, bytes.fromhex(digits), False, opens_records)
    any_case = text == text.lower()
    data = text.encode("utf-8", "surrogateescape") if kind is SearchKind.TEXT else b""
    return SearchQuery(kind, text, data, any_case, opens_records)


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


@cache
def _records_apis() -> frozenset[int]:
    """Return the APIs whose messages have records."""
    return frozenset(each.key for each in apis() if {each.request, each.response} & RECORDS_FIELDS.keys())


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

"""Finding text, bytes or a field in messages: in one that is looked at, and in the next rows that have it.

Text is looked for in what strings and bytes hold, in records, and in the names of fields and of numbers' meanings;
whatever its case, unless it has a capital letter. Bytes are hex. A field is a name, or a path such as ``topics.name``.

A row is decoded only if its bytes have what is looked for, or, of a name, if its API may. So what a compressed batch
holds is found in messages that are decoded anyway, and elsewhere only where records are to be opened.

Invariant: what was masked is not found; a row is told by what a user may see of it.
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
"""Hits of a message that are told; who wants more needs another word."""
SIDES: Final = ("request", "response")


class SearchError(ValueError):
    """What is looked for makes no sense; one plain line."""


class SearchKind(StrEnum):
    """What is looked for."""

    TEXT = "text"
    HEX = "hex"
    FIELD = "field"


class SearchHit(NamedTuple):
    """A place in a message: the field's path from the root, and bytes of one of the message's sources."""

    path: str
    source: int
    start: int
    end: int


@dataclass(frozen=True)
class SearchQuery:
    """What is looked for, made by `search_query`."""

    kind: SearchKind
    text: str
    data: bytes
    """As bytes; empty for a field."""
    any_case: bool
    opens_records: bool
    """Whether compressed records are looked into, wherever they are."""

    def hits(self, message: ExchangeMessage) -> list[SearchHit]:
        """Where a message has it, in the order of the tree."""
        found = self._fields(message.tree) if self.kind is not SearchKind.HEX else {}
        order = {node: place for place, node in enumerate(message.tree.walk())}
        hits = [(order[node], SearchHit(node.path, node.source, node.start, node.end)) for node in found.values()]
        for source in message.sources:
            starts = list(self._starts(source.data))
            for node, start in _leaves_at(message.tree, source.number, starts):
                hits.append((order[node], SearchHit(node.path, source.number, start, start + len(self.data))))
        return [hit for _, hit in sorted(hits)[:MAX_HITS]]

    def _fields(self, tree: Node) -> dict[str, Node]:
        """Fields whose name, or whose value's name, is what is looked for."""
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
        """Where the bytes are."""
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
        """The first of these rows, from 0, in the order given, that has it."""
        for number in self._candidates(capture, rows):
            if number < len(capture):
                [exchange] = capture.at(range(number, number + 1))
                if any(hits for _, hits in self.hits_of(exchange)):
                    return number
        return None

    def hits_of(self, exchange: Exchange) -> Iterator[tuple[str, list[SearchHit]]]:
        """The hits of each side that is there."""
        for side in SIDES:
            found: ExchangeMessage | None = getattr(exchange, side)
            if found is not None:
                yield side, self.hits(found)

    def _candidates(self, capture: Capture, rows: Int64) -> Iterator[int]:
        """Rows that may have it."""
        keys = capture.index_columns(rows).api_key
        may = (keys < 0) | np.isin(keys, np.array(sorted(self._apis()), np.int64))
        if not self.data:
            yield from rows[may].tolist()
            return
        for number, wanted, frames in zip(
            rows.tolist(), (may & (keys >= 0)).tolist(), capture.index.raw_frames(rows), strict=True
        ):
            if wanted or any(self.data in (frame.lower() if self.any_case else frame) for frame in frames):
                yield number

    def _apis(self) -> frozenset[int]:
        """The APIs whose messages may have it, whatever their bytes are."""
        keys = _records_apis() if self.opens_records else frozenset[int]()
        if self.kind is SearchKind.HEX:
            return keys
        name = self.text.rpartition(".")[2].partition("[")[0].lower()
        if self.kind is SearchKind.TEXT and name in _number_words():
            return frozenset(each.key for each in apis())
        by_name = frozenset(key for key, names in _names().items() if name in names)
        if self.kind is SearchKind.FIELD and not by_name:  # of what bytes hold, or of records
            return frozenset(each.key for each in apis())
        return keys | by_name


def search_query(text: str, kind: SearchKind, *, opens_records: bool = False) -> SearchQuery:
    """What to look for. Raises `SearchError` for nothing, and for what is no hex."""
    if not text:
        raise SearchError("nothing to look for")
    if kind is SearchKind.HEX:
        digits = re.sub(r"[\s:]|0x", "", text)
        if not re.fullmatch(r"(?:[0-9a-fA-F]{2})+", digits):
            raise SearchError(f"no bytes in hex: {text!r}: two digits a byte, such as 00 2a")
        return SearchQuery(kind, text, bytes.fromhex(digits), False, opens_records)
    any_case = text == text.lower()
    data = text.encode("utf-8", "surrogateescape") if kind is SearchKind.TEXT else b""
    return SearchQuery(kind, text, data, any_case, opens_records)


def _leaves_at(tree: Node, source: int, starts: list[int]) -> Iterator[tuple[Node, int]]:
    """The leaf that each offset of a source belongs to; offsets ascend."""
    at = 0
    if not starts:
        return
    for leaf in tree.leaves(source):
        while at < len(starts) and starts[at] < leaf.end:
            yield leaf, starts[at]
            at += 1
        if at == len(starts):
            return


@cache
def _records_apis() -> frozenset[int]:
    """The APIs whose messages have records."""
    return frozenset(each.key for each in apis() if {each.request, each.response} & RECORDS_FIELDS.keys())


@cache
def _names() -> dict[int, str]:
    """The names of all fields of an API's messages, in one string, by its key."""
    return {
        each.key: "\n".join(_names_of(message(each.request).fields + message(each.response).fields)) for each in apis()
    }


def _names_of(fields: tuple[Field, ...]) -> Iterator[str]:
    for field in fields:
        yield field.snake_name
        yield from _names_of(field.fields)


@cache
def _number_words() -> str:
    """What numbers are called, and the names of the header's fields, in one string of lower case."""
    headers = [*_names_of(message("RequestHeader").fields), *_names_of(message("ResponseHeader").fields)]
    words = [word for enum in enums() for word in members(enum).values()]
    return "\n".join([*words, *headers]).lower()

"""Frames that tell the same as one that was read before: told from their bytes, many at once.

Most of a busy capture repeats itself. A frame that was read is a pattern: others of the same API, version and size that
differ from it in numbers, in ASCII texts and in records alone have the same fields at the same places, so they read as
well as it did. Error codes, lengths and counts have to be the same.

Invariants:
  * what a pattern tells of a frame, reading tells too: a property test;
  * patterns are bounded, and what is spent on learning them has to pay.
"""

from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64, UInt8
from dissector.core.store import Store
from dissector.protocol.message import MessageLayout, trace
from dissector.protocol.schema.loader import alternatives, api
from dissector.protocol.tree import Node

LONGEST: Final = 2_048
"""Bytes of a frame that is looked at."""
PATTERNS: Final = 16
"""Kept of one API, version and size."""
SIZES: Final = 512
SEEN: Final = 1 << 14
"""Sizes of which it is known that they came once."""
CREDIT: Final = 512
PAYS: Final = 16
"""Frames that a pattern should spare reading; so many patterns are learned ahead of that."""
_NUMBERS: Final = frozenset(("INT8", "INT16", "INT32", "INT64", "UINT16", "UINT32", "FLOAT64", "UUID", "BOOLEAN"))
_ASCII: Final = 0x80
_FIXED, _TEXT, _FREE = 0, 1, 2
Kind = tuple[int, int, int]
"""API key, version, size."""


class _Pattern(NamedTuple):
    fixed: Int64
    """Where its bytes count; `texts`, where any of ASCII will do."""
    texts: Int64
    wanted: UInt8
    value: int


class Alike:
    """Patterns of requests, or of responses; each stands for a positive number."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._patterns: dict[Kind, list[_Pattern]] = {}
        self._seen: set[Kind] = set()
        self._credit = CREDIT

    def among(self, key: Int64, version: Int64, address: Int64, size: Int64) -> Int64:
        """The number that stands for each of these frames, `(n,)`; 0 where no pattern fits. A negative address is that
        of a frame that is not in one piece."""
        found = np.zeros(len(key), np.int64)
        usable = np.flatnonzero((address >= 0) & (size <= LONGEST) & (key >= 0) & (version >= 0))
        if not self._patterns or not len(usable):
            return found
        kinds = (key[usable] << 32) | (version[usable] << 16) | size[usable]
        different, which = np.unique(kinds, return_inverse=True)
        for at, kind in enumerate(different.tolist()):
            patterns = self._patterns.get((kind >> 32, kind >> 16 & 0xFFFF, kind & 0xFFFF))
            if patterns:
                some = usable[which == at]
                found[some] = _told(patterns, self._store.gather(address[some], kind & 0xFFFF))
        self._credit = min(CREDIT, self._credit + int(np.count_nonzero(found)) // PAYS)
        return found

    def learn(self, key: int, version: int, shape: MessageLayout, data: bytes, value: int) -> None:
        """A whole frame was read: what it told is `value`."""
        kind = key, version, len(data)
        if len(data) > LONGEST or not self._credit or not _is_plain(key, version, shape):
            return
        if kind not in self._seen:
            if len(self._seen) < SEEN:
                self._seen.add(kind)
            return
        patterns = self._patterns.get(kind, [])
        if _told(patterns, np.frombuffer(data, np.uint8)[np.newaxis]).any():
            return  # a frame that was read together with it taught that already
        if len(patterns) < PATTERNS and (patterns or len(self._patterns) < SIZES):
            self._credit -= 1
            self._patterns[kind] = [*patterns, _pattern(data, shape, value)]


def _told(patterns: list[_Pattern], data: UInt8) -> Int64:
    """What each row of bytes tells, `(n,)`."""
    found = np.zeros(len(data), np.int64)
    for pattern in patterns:
        left = np.flatnonzero(found == 0)
        if not len(left):
            break
        rows = data if len(left) == len(data) else data[left]
        fits = (rows[:, pattern.fixed] == pattern.wanted).all(axis=1)
        fits &= (rows[:, pattern.texts] < _ASCII).all(axis=1)
        found[left[fits]] = pattern.value
    return found


def _is_plain(key: int, version: int, shape: MessageLayout) -> bool:
    """Whether API and version alone say how a frame is laid out."""
    known = api(key)
    if known is None or not known.versions.contains(version) or shape.body is None or shape.findings:
        return False
    return shape.body_version == version and not alternatives(shape.body, version)


def _pattern(data: bytes, shape: MessageLayout, value: int) -> _Pattern:
    nodes = [node for node in trace(data, shape).tree.walk() if node.source == 0]
    leeway = np.full(len(data), _FIXED, np.uint8)
    for node in nodes:
        if node.type in _NUMBERS and not node.name.startswith("(") and not _is_error(node):
            leeway[node.start : node.end] = _FREE
        elif node.type.endswith("STRING") and isinstance(node.value, str) and node.value.isascii():
            leeway[node.end - len(node.value) : node.end] = _TEXT
    for node in nodes:
        if node.type.endswith("RECORDS") and node.children:
            leeway[node.children[0].end : node.end] = _FREE
    fixed = np.flatnonzero(leeway == _FIXED)
    return _Pattern(fixed, np.flatnonzero(leeway == _TEXT), np.frombuffer(data, np.uint8)[fixed], value)


def _is_error(node: Node) -> bool:
    """Whether it is an error code, or one of several."""
    return node.path.rpartition(".")[2].partition("[")[0].endswith("error_code")

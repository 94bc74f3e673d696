"""Produce responses that say nothing but where batches went, told from their bytes, many at once.

Most of a busy capture is these. One that was read and had neither error nor throttling is a pattern: others of the same
size and version that differ from it in offsets and partition numbers alone are as uneventful.

Invariant: whatever is called uneventful here reads as such: a property test.
"""

from typing import Final

import numpy as np

from dissector.core.arrays import Bool
from dissector.core.store import Store
from dissector.findings.rows import Rows
from dissector.index.exchange_table import NO_FRAME
from dissector.protocol.message import response_layout, trace

LONGEST: Final = 256
"""Bytes of a response that is looked at."""
PATTERNS: Final = 16
"""Kept of one size and version: as many topics with names of the same length."""
SIZES: Final = 256
ID_END: Final = 8
"""Size and correlation id."""
MAY_DIFFER: Final = frozenset(("index", "base_offset", "log_append_time_ms", "log_start_offset"))
Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]


class Uneventful:
    """Patterns, learned as responses are read."""

    def __init__(self, store: Store, key: int) -> None:
        self._store = store
        self._key = key
        self._patterns: dict[tuple[int, int], list[tuple[Bytes, Bool]]] = {}
        """By version and size: the bytes, and which of them count."""

    def among(self, rows: Rows) -> Bool:
        """Which rows have such a response, as far as patterns tell."""
        found = np.zeros(len(rows.row), np.bool_)
        candidates = (rows.api_key == self._key) & (rows.response != NO_FRAME) & (rows.answered_at >= 0)
        for (version, size), patterns in self._patterns.items():
            some = np.flatnonzero(candidates & (rows.version == version) & (rows.answered_size == size))
            if not len(some):
                continue
            data = self._store.gather(rows.answered_at[some], size)
            alike = np.zeros(len(some), np.bool_)
            for pattern, counts in patterns:
                alike |= (data[:, counts] == pattern[counts]).all(axis=1)
            found[some] = alike
        return found

    def learn(self, version: int, data: bytes) -> None:
        """A response had nothing to tell."""
        patterns = self._patterns.get((version, len(data)), [])
        if len(data) > LONGEST or len(patterns) >= PATTERNS or len(self._patterns) >= SIZES:
            return
        pattern = np.frombuffer(data, np.uint8)
        if any(np.array_equal(pattern[counts], known[counts]) for known, counts in patterns):
            return
        counts = np.ones(len(data), np.bool_)
        counts[:ID_END] = False
        for node in trace(data, response_layout(self._key, version, data)).tree.walk():
            if node.name in MAY_DIFFER and not node.children:
                counts[node.start : node.end] = False
        self._patterns.setdefault((version, len(data)), []).append((pattern, counts))

"""A digest of the packets of a capture as they are, whatever the file around them.

It covers of each packet its time, its length on the wire, its link type and its captured bytes, and the order of the
packets; also the TLS secrets in the file, as they decide what can be read of the packets. It does not cover the format,
its byte order, blocks and compression, nor names and comments.

Invariant: the size of batches makes no difference.
"""

from hashlib import sha256
from itertools import pairwise
from typing import Final

import numpy as np

from dissector.core.batches import PacketBatch
from dissector.core.grouping import gathered

_PIECE: Final = 1 << 20
"""Approximate bytes that are copied together at a time: they stay in the processor's cache."""


class PacketDigest:
    """Takes the packets of one capture, in their order.

    SHA-256 adds 0.7 s of CPU a GB to an ingest of 50; no faster one is safe: equal digests leave a capture out."""

    def __init__(self) -> None:
        self._columns = sha256()
        self._bytes = sha256()

    def add(self, batch: PacketBatch) -> None:
        """Add packets."""
        columns = (batch.time_ns, batch.length, batch.captured, batch.link_type)
        self._columns.update(np.stack([column.astype("<i8") for column in columns], axis=1).tobytes())
        pieces = np.cumsum(batch.captured) // _PIECE
        edges = [0, *(np.flatnonzero(np.diff(pieces)) + 1).tolist(), len(batch)]
        for first, end in pairwise(edges):
            self._bytes.update(gathered(batch.data, batch.offset[first:end], batch.captured[first:end]).data.data)

    def value(self, secrets: bytes) -> str:
        """Return the digest of the packets so far, and of the TLS secrets in the file, in hexadecimal."""
        parts = (self._columns.digest(), self._bytes.digest(), sha256(secrets).digest())
        return sha256(b"".join(parts)).hexdigest()

"""Producers that send large batches without compression."""

import zlib
from typing import ClassVar, Final

from dissector.core.finding import Severity
from dissector.core.text import size
from dissector.findings.explanation import Explanation
from dissector.findings.framework.decoded_exchange import Seen
from dissector.findings.framework.detector import Around, BodyFinder
from dissector.findings.framework.open_findings import Case, Telling
from dissector.findings.framework.recurrence import Recent
from dissector.protocol.records.batch import HEADER
from dissector.protocol.schema.api_keys import ApiKey

LARGE: Final = 8 << 10
"""Bytes of a batch from which on compression pays."""
ENOUGH: Final = 32 << 10
"""Bytes of such batches on one connection before anything is said."""
SAMPLE: Final = 4 << 10
"""Bytes that are compressed to see whether it would help."""
WORTH: Final = 0.7
"""What a sample must come down to."""


class UncompressedBatches(BodyFinder):
    """Batches that would be a good deal smaller compressed."""

    explanation: ClassVar = Explanation(
        "uncompressed-batches",
        "Large batches without compression",
        Severity.NOTE,
        "A producer sent batches of 8 KiB or more without a codec, and a sample of them comes down by a third or more "
        "when it is compressed.",
        "Producers do not compress unless compression.type is set.",
        "Set compression.type on the producer: lz4 or zstd for little work, gzip where consumers have nothing else. It "
        "saves network, disk and replication alike, and batches fill up better with linger.ms above 0.",
    )
    apis: ClassVar = frozenset((ApiKey.PRODUCE,))

    def __init__(self, found: Telling, around: Around) -> None:
        super().__init__(found, around)
        self._plain: Recent[int, _Plain] = Recent(_Plain)

    def look(self, seen: Seen) -> None:
        """One case a connection, when there were enough."""
        for batch in seen.batches:
            if batch.codec or len(batch.records) < LARGE:
                continue
            plain = self._plain.of(seen.connection)
            plain.bytes += len(batch.records)
            plain.count += 1
            if plain.bytes < ENOUGH or plain.is_dense:
                continue
            words = f"{plain.count:,} batches of {size(plain.bytes)} bytes in all went uncompressed"
            if plain.case is not None:
                plain.case.retell(words)
                continue
            sample = batch.records[HEADER.size : HEADER.size + SAMPLE]
            if len(zlib.compress(sample, 1)) > WORTH * len(sample):
                plain.is_dense = True  # compressed by whoever made the values, or encrypted
            else:
                plain.case = self.tell(seen.row, words, batch.path)


class _Plain:
    case: Case | None = None
    bytes = 0
    count = 0
    is_dense = False

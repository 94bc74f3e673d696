"""How producers make their batches: too small, or larger than they need be."""

import zlib
from typing import ClassVar, Final

from dissector.core.finding import Severity
from dissector.core.text import size
from dissector.findings.explanation import Explanation
from dissector.findings.finder import Around, BodyFinder
from dissector.findings.found import Case, Telling
from dissector.findings.recurring import SECOND, Burst, Recent
from dissector.findings.seen import Seen
from dissector.protocol.records.batch import HEADER
from dissector.protocol.schema.api_keys import ApiKey

FEW: Final = 2
"""Records of a batch that is tiny."""
MANY: Final = 50
SPAN_NS: Final = 5 * SECOND
LARGE: Final = 8 << 10
"""Bytes of a batch from which on compression pays."""
ENOUGH: Final = 32 << 10
"""Bytes of such batches on one connection before anything is said."""
SAMPLE: Final = 4 << 10
"""Bytes that are compressed to see whether it would help."""
WORTH: Final = 0.7
"""What a sample must come down to."""


class TinyBatches(BodyFinder):
    """Produce requests with next to nothing in them, one after the other."""

    explanation: ClassVar = Explanation(
        "tiny-batches",
        "Many tiny batches",
        Severity.NOTE,
        "A producer sent fifty Produce requests or more in quick succession whose batches had one or two records each.",
        "With linger.ms=0 (the default before Kafka 4.0) a producer sends what it has at once; one that flushes, or "
        "waits for the answer, after each record does so with any setting. Records spread over many partitions make "
        "for small batches.",
        "Set linger.ms to 5 or more so that batches fill up to batch.size, do not call flush() or wait for each "
        "record, and compress. Each request costs the broker about the same, whatever is in it.",
    )
    apis: ClassVar = frozenset((ApiKey.PRODUCE,))

    def __init__(self, found: Telling, around: Around) -> None:
        super().__init__(found, around)
        self._bursts: Recent[int, Burst] = Recent(Burst)

    def look(self, seen: Seen) -> None:
        """A request with larger batches ends what was begun."""
        burst, batches = self._bursts.of(seen.connection), seen.batches
        for batch in batches:
            if batch.records_count > FEW:
                burst.over()
                return
        if not batches:
            burst.over()
        elif burst.is_on(seen.asked_ns, MANY, SPAN_NS):
            words = f"{burst.count:,} Produce requests with batches of at most {FEW} records"
            self.burst(burst, seen.row, seen.asked_ns, words, "request.body.topic_data")


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

"""Detectors of one message for tests, with tests of numbers and without, of each side and of both; and a capture for
them."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.core.finding import Finding, Severity
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.model import Exchange
from dissector.findings import registry
from dissector.findings.detectors.sequence_numbers import RetriedBatch
from dissector.findings.detectors.slow_response import SLOW
from dissector.findings.framework.detector import MessageDetector
from dissector.findings.framework.read_fields import DeclaredFields, ReadFields
from dissector.protocol.schema.api_keys import ApiKey
from tests.findings.conversations import Talk, written

ACKS = "request.acks"
WATERMARK = "response.responses.partitions.high_watermark"
OFFSET = "response.responses.partition_responses.base_offset"
ROWS = 500
"""Exchanges of each API in the capture that is made."""


class AllAcks(MessageDetector):
    """A field with few different values, and no test: nearly all rows have the finding."""

    explanation: ClassVar = RetriedBatch.explanation
    apis: ClassVar = frozenset((ApiKey.PRODUCE,))
    reads: ClassVar = {ACKS: None}

    def find(self, fields: ReadFields) -> Iterator[Finding]:
        for path, acks in fields.places(ACKS):
            if acks == -1:
                yield self.finding("acks=all", path)


class RoundWatermark(MessageDetector):
    """An element of an array, of which each message has another: a test finds the few rows with the finding."""

    explanation: ClassVar = SLOW
    apis: ClassVar = frozenset((ApiKey.FETCH,))
    reads: ClassVar = {WATERMARK: lambda values: (values > 0) & (values % 50 == 0)}

    def find(self, fields: ReadFields) -> Iterator[Finding]:
        for path, value in fields.places(WATERMARK):
            if isinstance(value, int) and value > 0 and value % 50 == 0:
                yield self.finding(f"high watermark {value}", path, Severity.ERROR)


class OddEpoch(MessageDetector):
    explanation: ClassVar = RetriedBatch.explanation
    apis: ClassVar = frozenset((ApiKey.FETCH,))
    reads: ClassVar = {"request.session_epoch": lambda epochs: epochs % 2 == 1}

    def find(self, fields: ReadFields) -> Iterator[Finding]:
        for epoch in fields.values("request.session_epoch"):
            if isinstance(epoch, int) and epoch % 2:
                yield self.finding(f"session epoch {epoch} is odd", "request.body.session_epoch")


class LongClientId(MessageDetector):
    explanation: ClassVar = RetriedBatch.explanation
    reads: ClassVar = {"request.header.client_id": None}

    def find(self, fields: ReadFields) -> Iterator[Finding]:
        for client in fields.values("request.header.client_id"):
            if str(client).endswith("1"):
                yield self.finding("a client id that ends with 1")


class OffsetsOfBoth(MessageDetector):
    """Reads both sides, and tests one."""

    explanation: ClassVar = RetriedBatch.explanation
    apis: ClassVar = frozenset((ApiKey.PRODUCE,))
    reads: ClassVar = {OFFSET: lambda offsets: offsets % 3 == 0, "request.timeout_ms": None}

    def find(self, fields: ReadFields) -> Iterator[Finding]:
        timeout = fields.values("request.timeout_ms")
        if timeout and any(isinstance(offset, int) and offset % 3 == 0 for offset in fields.values(OFFSET)):
            yield self.finding(f"an offset is a multiple of three, {timeout}", severity=Severity.ERROR)


class EvenAnywhere(MessageDetector):
    """Tests both sides, at any depth; any test that passes is enough."""

    explanation: ClassVar = RetriedBatch.explanation
    reads: ClassVar = {
        "response.**.throttle_time_ms": lambda times: times % 2 == 0,
        "request.**.generation_id": lambda generations: generations % 2 == 1,
    }

    def find(self, fields: ReadFields) -> Iterator[Finding]:
        if any(isinstance(value, int) and value % 2 == 0 for value in fields.values("response.**.throttle_time_ms")):
            yield self.finding("throttled for an even time")
        if any(isinstance(value, int) and value % 2 for value in fields.values("request.**.generation_id")):
            yield self.finding("an odd generation", severity=Severity.WARNING)


class EpochOfFeatures(MessageDetector):
    """Tests a tagged field."""

    explanation: ClassVar = RetriedBatch.explanation
    reads: ClassVar = {"response.finalized_features_epoch": lambda epochs: epochs > 0}

    def find(self, fields: ReadFields) -> Iterator[Finding]:
        for path, epoch in fields.places("response.finalized_features_epoch"):
            if isinstance(epoch, int) and epoch > 0:
                yield self.finding(f"epoch {epoch}", path)


def use(monkeypatch: pytest.MonkeyPatch, *detectors: type[MessageDetector]) -> None:
    """Register detectors for a test, in place of those whose codes they have."""
    codes = {each.explanation.code for each in detectors}
    others = [each for each in registry.DETECTORS if each.explanation.code not in codes]
    monkeypatch.setattr(registry, "DETECTORS", (*others, *detectors))


def expected(path: Path, *detectors: type[MessageDetector]) -> list[list[Finding]]:
    """The findings of each row, decoded by itself."""
    with Capture([str(path)]) as capture:
        for _ in capture.read():
            pass
        return [[finding for each in detectors for finding in of_row(each(), exchange)]
                for exchange in capture.exchanges()]  # fmt: skip


def of_row(detector: MessageDetector, exchange: Exchange) -> Iterator[Finding]:
    key = exchange.api_key
    if exchange.request is not None and key is not None and (not detector.apis or key in detector.apis):
        yield from detector.find(ReadFields(exchange, DeclaredFields("", detector.reads)))


def opened(path: Path) -> Capture:
    capture = Capture([str(path)])
    for _ in capture.read():
        pass
    for _ in capture.findings.examine():
        pass
    return capture


def make_capture(folder: Path) -> Path:
    """A capture of producers and a consumer: each Fetch has another high watermark."""
    talk = Talk()
    for number in range(ROWS):
        produced = {"index": 0, "records": None}
        talk.ask(
            4 * number, "Produce", 9,
            {"acks": 1 if number % 10 == 0 else -1, "topic_data": [{"name": "t", "partition_data": [produced]}]},
            {"responses": [{"name": "t", "partition_responses": [{"index": 0, "base_offset": number}]}]},
        )  # fmt: skip
        partition = {"partition_index": 0, "high_watermark": number, "records": None}
        talk.ask(
            4 * number + 2, "Fetch", 12, {"topics": [{"topic": "t", "partitions": [{"partition": 0}]}]},
            {"responses": [{"topic": "t", "partitions": [partition, {**partition, "partition_index": 1}]}]},
        )  # fmt: skip
    return Path(written(folder, talk))


def rows_decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that are decoded from now on, call by call."""
    decoded: list[int] = []
    decode = ExchangeDecoder.exchanges

    def exchanges(decoder: ExchangeDecoder, rows: range | Int64) -> Iterator[Exchange]:
        decoded.append(len(rows))
        return decode(decoder, rows)

    monkeypatch.setattr(ExchangeDecoder, "exchanges", exchanges)
    return decoded

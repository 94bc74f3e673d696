"""Detectors of one message: the rows that have their findings are found by columns, the others cost nothing, and all
faces agree."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

from dissector.capture.partition import CapturePartition
from dissector.capture_session import Capture
from dissector.cli.main import app
from dissector.core.arrays import Int64
from dissector.core.finding import Finding, Severity
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.model import Exchange
from dissector.filter import parse
from dissector.filter.column_evaluation import YES
from dissector.filter.selection import evaluate_index
from dissector.findings import registry
from dissector.findings.detectors.sequence_numbers import RetriedBatch
from dissector.findings.detectors.slow_response import SLOW
from dissector.findings.framework.message_detector import MessageDetector
from dissector.findings.framework.read_fields import DeclaredFields, ReadFields, UndeclaredFieldError, read_field
from dissector.pipeline.packed_rows import Made, WholeRowBuilder
from dissector.protocol.schema.api_keys import ApiKey
from tests.capture_session.test_incremental import packets, together
from tests.cases import cases
from tests.conftest import PCAPS, some_of
from tests.findings.conversations import START, Talk, grown, heartbeat, written
from tests.pipeline.without_spark import tables

NAMES = (
    "compare-java-1",
    "java-kip848",
    "kafka-python",
    "trouble-consumer-lag",
    "two-brokers",
    "java-sasl-scram-sha-512",
)
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


@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(NAMES, "trouble-consumer-lag", "two-brokers"))
@pytest.mark.parametrize(
    "detector", [AllAcks, RoundWatermark, OddEpoch, LongClientId, OffsetsOfBoth, EvenAnywhere, EpochOfFeatures]
)
def test_findings_are_those_of_a_decoding_of_each_row(
    monkeypatch: pytest.MonkeyPatch, name: str, detector: type[MessageDetector]
) -> None:
    use(monkeypatch, detector)
    path = PCAPS / f"{name}.pcapng"
    wanted, code = expected(path, detector), detector.explanation.code
    with opened(path) as capture:
        exchanges = list(capture.exchanges())
        assert [[each for each in exchange.findings if each.code == code] for exchange in exchanges] == wanted
        for _ in capture.findings.examine_messages(np.arange(len(capture))):
            pass
        answers = evaluate_index(parse(f"finding == {code}"), capture, range(len(capture)))
        assert (answers == YES).tolist() == [bool(findings) for findings in wanted]
        gravest = evaluate_index(parse("severity == error"), capture, range(len(capture)))
        assert (gravest == YES).tolist() == [each.row.severity is Severity.ERROR for each in exchanges]


def test_captures_have_what_these_detectors_find() -> None:
    for detector in (AllAcks, OddEpoch, LongClientId, OffsetsOfBoth, EvenAnywhere, EpochOfFeatures):
        assert any(any(expected(PCAPS / f"{name}.pcapng", detector)) for name in NAMES), detector


# What it costs, and that all faces agree.


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    return Path(written(tmp_path_factory.mktemp("made"), talk))


@pytest.fixture
def paths(made: Path) -> dict[str, Path]:
    return {"made": made, "producer": PCAPS / "librdkafka-pipelined.pcapng", "consumers": PCAPS / "two-brokers.pcapng"}


def rows_decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that are decoded from now on, call by call."""
    decoded: list[int] = []
    decode = ExchangeDecoder.exchanges

    def exchanges(decoder: ExchangeDecoder, rows: range | Int64) -> Iterator[Exchange]:
        decoded.append(len(rows))
        return decode(decoder, rows)

    monkeypatch.setattr(ExchangeDecoder, "exchanges", exchanges)
    return decoded


def printed(*words: str) -> str:
    """What a command prints."""
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code in (0, 1), result.output  # 1: there is no such row
    return result.stdout


def shown(path: Path) -> list[set[str]]:
    lines = printed("show", str(path)).splitlines()[1:]
    return [set(re.findall(r"\[([a-z0-9-]+)\]", line)) for line in lines]


def in_json(path: Path) -> list[set[str]]:
    lines = printed("show", str(path), "--format", "json").splitlines()
    return [{each["code"] for each in json.loads(line)["findings"]} for line in lines]


def filtered(path: Path, wanted: str) -> set[int]:
    return {int(line) - 1 for line in printed("show", str(path), "-Y", wanted, "--fields", "number").split()}


def ingested(path: Path) -> Counter[str]:
    return Counter(each["code"] for each in tables([path])["findings"])


FACES = {
    "show": lambda path: shown(path),
    "json": lambda path: in_json(path),
    "filter": lambda path: filtered(path, f"finding == {SLOW.code}"),
    "severity": lambda path: filtered(path, "severity == error"),
    "stats": lambda path: printed("stats", str(path), "--by", "finding", "--format", "json"),
    "ingest": lambda path: ingested(path),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ["made", "producer", "consumers"])
@pytest.mark.parametrize("face", FACES)
def test_rows_with_and_without_findings_go_by_columns(
    paths: dict[str, Path], name: str, face: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = paths[name]
    with Capture([str(path)]) as capture:
        for _ in capture.read():
            pass
        count = len(capture)
    decoded = rows_decoded(monkeypatch)
    FACES[face](path)
    without = sum(decoded)
    use(monkeypatch, AllAcks, RoundWatermark)
    decoded.clear()
    FACES[face](path)
    assert sum(decoded) <= without + 0.05 * count
    if name == "made":
        assert sum(decoded) <= 0.05 * count


@pytest.mark.slow
@pytest.mark.parametrize("name", ["made", "producer", "consumers"])
def test_rows_of_tables_with_findings_are_made_by_columns(
    paths: dict[str, Path], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, by_columns = WholeRowBuilder.rows, 0

    def counted(builder: WholeRowBuilder, chosen: Int64) -> Iterator[Made]:
        nonlocal by_columns
        for made in make(builder, chosen):
            by_columns += len(made.rows)
            yield made

    monkeypatch.setattr(WholeRowBuilder, "rows", counted)
    tables([paths[name]])
    without, by_columns = by_columns, 0
    use(monkeypatch, AllAcks, RoundWatermark)
    found = tables([paths[name]])
    assert by_columns == without
    rows = {(each["packet"], each["start"]): at for at, each in enumerate(sorted(
        found["exchanges"], key=lambda each: (each["packet"], each["start"])))}  # fmt: skip
    wanted = [(at, *each) for at, findings in enumerate(expected(paths[name], AllAcks, RoundWatermark))
              for each in ((each.code, each.message, each.path) for each in findings)]  # fmt: skip
    codes = {RetriedBatch.explanation.code, SLOW.code}
    assert wanted == sorted(
        (rows[each["packet"], each["start"]], each["code"], each["message"], each["path"])
        for each in found["findings"] if each["code"] in codes
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ["made", "producer", "consumers"])
def test_all_faces_agree(paths: dict[str, Path], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = paths[name]
    use(monkeypatch, AllAcks, RoundWatermark)
    wanted = expected(path, AllAcks, RoundWatermark)
    lines, objects = shown(path), in_json(path)
    counts = {each["finding"]: each["exchanges"] for each in map(
        json.loads, printed("stats", str(path), "--by", "finding", "--format", "json").splitlines())}  # fmt: skip
    in_tables = ingested(path)
    for detector in (AllAcks, RoundWatermark):
        code = detector.explanation.code
        rows = {at for at, findings in enumerate(wanted) if code in {each.code for each in findings}}
        assert {at for at, codes in enumerate(lines) if code in codes} == rows
        assert {at for at, codes in enumerate(objects) if code in codes} == rows
        assert filtered(path, f"finding == {code}") == rows
        assert counts.get(code, 0) == len(rows)
        assert in_tables[code] == sum(each.code == code for findings in wanted for each in findings)
    with opened(path) as capture:
        errors = {at for at, each in enumerate(capture.exchanges()) if each.row.severity is Severity.ERROR}
    assert filtered(path, "severity == error") == errors
    assert errors >= {
        at for at, findings in enumerate(wanted) if Severity.ERROR in {each.severity for each in findings}
    }


def test_detectors_look_at_the_same_decoded_row(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class OfWatermark(RoundWatermark):
        explanation: ClassVar = RetriedBatch.explanation

    decoded = rows_decoded(monkeypatch)
    use(monkeypatch, RoundWatermark)
    opened(made).close()
    alone = sum(decoded)
    decoded.clear()
    use(monkeypatch, RoundWatermark, OfWatermark)
    opened(made).close()
    assert sum(decoded) == alone > 0


def test_with_a_filter_only_rows_that_match_are_looked_at(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, AllAcks, RoundWatermark)
    with Capture([str(made)]) as capture:
        for _ in capture.read():
            pass
        capture.findings.limit_to(np.array([2, 100, 101]))
        for _ in capture.findings.examine():
            pass
        assert [row for row, _ in capture.findings.cross_message()] == [2, 101, 101]


def test_findings_do_not_depend_on_how_a_capture_grows(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, AllAcks, RoundWatermark)
    whole = made.read_bytes()
    for capture in grown(tmp_path / "growing.pcapng", whole, [len(whole) // 3, len(whole) // 2]):
        for _ in capture.findings.examine():
            pass
        found = capture.findings.cross_message()
    assert found == [(at, each) for at, findings in enumerate(expected(made, AllAcks, RoundWatermark))
                     for each in findings]  # fmt: skip


def test_a_detector_sees_what_it_declares_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    class Undeclared(OddEpoch):
        reads: ClassVar = {"request.max_wait_ms": None}

    use(monkeypatch, Undeclared)
    with pytest.raises(UndeclaredFieldError, match="session_epoch"):
        opened(PCAPS / "java.pcapng")


def test_only_a_number_is_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    class OfText(OddEpoch):
        reads: ClassVar = {"request.topics": lambda values: values > 0}

    use(monkeypatch, OfText)
    with pytest.raises(ValueError, match=r"body\.topics is no number"):
        opened(PCAPS / "java.pcapng")


@cases(
    "field", ["session_epoch", "request", "request.", "both.topics", "request..name", "request.topics.**", "request.**"]
)
def test_a_field_has_a_side_and_a_path(field: str) -> None:
    with pytest.raises(ValueError, match=r"write request\.FIELD"):
        read_field(field)


def test_a_secret_is_masked_for_detectors_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class OfToken(MessageDetector):
        explanation: ClassVar = RetriedBatch.explanation
        reads: ClassVar = {"request.hmac": None}

        def find(self, fields: ReadFields) -> Iterator[Finding]:
            for hmac in fields.values("request.hmac"):
                yield self.finding(str(hmac))

    use(monkeypatch, OfToken)
    talk = Talk()
    heartbeat(talk, 0)
    talk.ask(1, "RenewDelegationToken", 2, {"hmac": b"letmein", "renew_period_ms": 1}, {"error_code": 0})
    with opened(Path(written(tmp_path, talk))) as capture:
        [(_, finding)] = capture.findings.cross_message()
        assert finding.message == str(b"*" * len(b"letmein"))


def test_elements_of_arrays_are_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    class ReplicaTwo(MessageDetector):
        explanation: ClassVar = RetriedBatch.explanation
        apis: ClassVar = frozenset((ApiKey.METADATA,))
        reads: ClassVar = {"response.topics.partitions.replica_nodes": lambda nodes: nodes == 2}

        def find(self, fields: ReadFields) -> Iterator[Finding]:
            for path, node in fields.places("response.topics.partitions.replica_nodes"):
                if node == 2:
                    yield self.finding("a replica on node 2", path)

    use(monkeypatch, ReplicaTwo)
    path = PCAPS / "two-brokers.pcapng"
    with opened(path) as capture:
        found = [each for each in capture.findings.cross_message() if each[1].code == RetriedBatch.explanation.code]
    assert found == [(at, each) for at, findings in enumerate(expected(path, ReplicaTwo)) for each in findings]
    assert found[0][1].path.startswith("response.body.topics[0].partitions[0].replica_nodes[")


def positions(capture: Capture, rows: Int64) -> list[tuple[int, int]]:
    """The packet and the stream offset of the first byte of rows."""
    packets_of_rows, starts = capture.frames.positions(rows)
    return list(zip(packets_of_rows.tolist(), starts.tolist(), strict=True))


@pytest.mark.slow
def test_pieces_of_a_capture_have_the_findings_of_the_whole(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, AllAcks, RoundWatermark)
    blocks, state, found = packets(made), None, []
    for first, stop in pairwise([0, 3, 700, 701, 1_500, len(blocks)]):
        part = CapturePartition("some", together(blocks[first:stop]))
        with Capture([part], checkpoint=state) as capture:
            is_last = stop == len(blocks)
            for _ in capture.read(sort=False) if is_last else capture.pipeline.read_available():
                pass
            for _ in capture.findings.examine_in_order(START):
                pass
            rows = capture.incremental.take_final_rows()
            places = positions(capture, rows)
            found += [(place, finding) for place, exchange in zip(places, capture.at(rows), strict=True)
                      for finding in exchange.findings]  # fmt: skip
            found += [(each.position, each.finding) for each in capture.incremental.take_revisions()]
            state = None if is_last else capture.incremental.checkpoint()
    with opened(made) as capture:
        whole = [(place, finding) for place, exchange in
                 zip(positions(capture, np.arange(len(capture))), capture.exchanges(), strict=True)
                 for finding in exchange.findings]  # fmt: skip
    assert sorted(found, key=repr) == sorted(whole, key=repr)


def test_all_findings_that_rows_have_alike_are_kept(monkeypatch: pytest.MonkeyPatch, made: Path) -> None:
    """Findings that may change are bounded; those of one message are a number a row, as long as there are few."""
    use(monkeypatch, AllAcks)
    monkeypatch.setattr("dissector.findings.framework.examination.MAX_FINDINGS", 3)
    with opened(made) as capture:
        rows = [at for at, exchange in enumerate(capture.exchanges()) if exchange.findings]
        assert len(rows) == 9 * ROWS // 10
        assert [row for row, _ in capture.findings.cross_message()] == rows[:3]
        assert not capture.problems
    monkeypatch.setattr("dissector.findings.framework.open_findings.MOST_LISTS", 1)
    with opened(made) as capture:
        assert [at for at, exchange in enumerate(capture.exchanges()) if exchange.findings] == rows[:3]
        assert [each.code for each in capture.problems] == ["findings-omitted"]

"""Detectors of one message: rows have the findings that a decoding of each gives, however a capture is read."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from dissector.capture.partition import CapturePartition
from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.core.finding import Finding, Severity
from dissector.filter import parse
from dissector.filter.column_evaluation import YES
from dissector.filter.selection import evaluate_index
from dissector.findings.detectors.sequence_numbers import RetriedBatch
from dissector.findings.framework.detector import MessageDetector
from dissector.findings.framework.read_fields import ReadFields, UndeclaredFieldError, read_field
from dissector.protocol.schema.api_keys import ApiKey
from tests.capture_session.test_incremental import packets, together
from tests.cases import cases
from tests.conftest import PCAPS, some_of
from tests.findings.conversations import START, Talk, grown, heartbeat, written
from tests.findings.message_detectors import (
    ROWS,
    AllAcks,
    EpochOfFeatures,
    EvenAnywhere,
    LongClientId,
    OddEpoch,
    OffsetsOfBoth,
    RoundWatermark,
    expected,
    make_capture,
    opened,
    rows_decoded,
    use,
)

NAMES = (
    "compare-java-1",
    "java-kip848",
    "kafka-python",
    "trouble-consumer-lag",
    "two-brokers",
    "java-sasl-scram-sha-512",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_capture(tmp_path_factory.mktemp("made"))


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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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

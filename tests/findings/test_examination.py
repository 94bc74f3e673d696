"""The pass: the same findings however the rows come, bounded, and in every face."""

import copy
import functools
import gc
import json
import time
import weakref
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.bulk.body_columns import BodyColumns
from dissector.capture_session import Capture
from dissector.core.finding import Finding, Severity
from dissector.core.object_graph import from_nodes, to_nodes
from dissector.findings.detectors.rebalance_loop import GroupExtractor
from dissector.findings.detectors.repeated_errors import RepeatedExpectedError
from dissector.findings.detectors.versions import RejectionExtractor
from dissector.findings.explanation import Explanation
from dissector.findings.framework import body_reader
from dissector.findings.framework.aggregation import EXTRACTORS, ObservationLog
from dissector.findings.framework.body_reader import CleanResponses
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.examination import Examination
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.open_findings import FindingStore
from dissector.findings.framework.recurrence import BoundedStates
from dissector.findings.registry import DETECTORS
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from tests.cases import cases
from tests.conftest import PCAPS, some_of
from tests.findings.conversations import Talk, grown, heartbeat, produce, troubles, written

RECORDED = sorted(PCAPS.glob("trouble-*.pcapng"))
VARIED = (
    "trouble-throttled", "trouble-rebalance-loop", "trouble-closed-in-flight", "trouble-near-loss", "trouble-slow",
    "trouble-duplicate-correlation-id", "trouble-unreadable-request",
)  # fmt: skip
"""Findings of a message, of a group, of the end of a connection, of loss, of time, of order, of what can't be read."""
QUICK = [path for path in RECORDED if path.stem != "trouble-slow"]


@functools.cache
def of_whole(recorded: Path) -> list[tuple[int, Finding]]:
    """What is found in a recording that is examined at once."""
    return troubles(str(recorded))


@pytest.mark.exhaustive
@pytest.mark.slow
@cases("recorded", RECORDED, ids=lambda path: path.stem)
@cases("step", [1, 7])
def test_steps_make_no_difference(recorded: Path, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = of_whole(recorded)
    monkeypatch.setattr("dissector.findings.framework.examination.STEP", step)
    assert troubles(str(recorded)) == whole


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("recorded", some_of(RECORDED, *VARIED), ids=lambda path: path.stem)
def test_rows_that_come_while_it_is_examined_are_found_as_well(recorded: Path, tmp_path: Path) -> None:
    whole = recorded.read_bytes()
    cuts = [len(whole) * n // 6 for n in range(1, 6)]
    rows: list[tuple[int, Finding]] = []
    for capture in grown(tmp_path / "growing.pcapng", whole, cuts):
        for _ in capture.findings.examine():
            pass
        rows = capture.findings.cross_message()
    assert [finding.code for _, finding in rows] == [finding.code for _, finding in of_whole(recorded)]


@pytest.mark.long
def test_it_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissector.findings.framework.examination.STEP", 5)
    talk = Talk()
    for n in range(60):
        produce(talk, n)
    path = written(tmp_path, talk)
    with Capture([path]) as capture:
        for _ in capture.read():
            pass
        steps = capture.findings.examine()
        assert next(steps).done == 5
        assert isinstance(steps, Generator)
        steps.close()
        assert not capture.findings.cross_message()
        assert [step.done for step in capture.findings.examine()] == [*range(10, 61, 5)]
        assert [code for _, finding in capture.findings.cross_message() if (code := finding.code)] == ["tiny-batches"]


def test_threads_that_begin_at_once_share_an_examination(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Examination] = []

    class SlowlyMade(Examination):
        def __init__(self, *arguments: Any, **more: Any) -> None:
            made.append(self)
            time.sleep(0.05)  # time enough for others to begin
            super().__init__(*arguments, **more)

    monkeypatch.setattr("dissector.findings.framework.examination.Examination", SlowlyMade)
    recorded = PCAPS / "trouble-version-not-offered.pcapng"
    with Capture([str(recorded)]) as capture:
        for _ in capture.read():
            pass
        with ThreadPoolExecutor(3) as threads:
            list(threads.map(lambda _: list(capture.findings.examine()), range(3)))
        assert len(made) == 1
        assert capture.findings.cross_message() == of_whole(recorded)


@pytest.mark.long
@pytest.mark.slow
@cases("recorded", QUICK, ids=lambda path: path.stem)
def test_concurrent_threads_find_what_one_finds(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = of_whole(recorded)
    monkeypatch.setattr("dissector.findings.framework.examination.STEP", 3)
    with Capture([str(recorded)]) as capture:
        for _ in capture.read():
            pass
        with ThreadPoolExecutor(3) as threads:
            steps = list(threads.map(lambda _: [step.done for step in capture.findings.examine()], range(3)))
        assert max(done for each in steps for done in each) == len(capture)
        assert capture.findings.cross_message() == whole


@pytest.mark.parametrize(
    "name",
    ["franz-go.pcapng", "plain-socket.pcapng", "trouble-rebalance-loop.pcapng", "groups/poll-timeout-kip848.pcapng.gz"],
)
def test_exchanges_that_no_examiner_needs_show_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = str(PCAPS / name)
    chosen = troubles(recorded)
    choosing = [each for each in (*EXTRACTORS, *DETECTORS) if "needed" in vars(each)]
    assert choosing
    for each in choosing:
        monkeypatch.delattr(each, "needed")
    assert chosen == troubles(recorded) != []


def rows_of(connections: list[int], api_keys: list[int]) -> ExaminedRows:
    """Rows of which nothing else is known."""
    columns = {"connection": np.array(connections), "api_key": np.array(api_keys)}
    return ExaminedRows(lambda _, name: columns.get(name, np.zeros(len(connections), np.int64)))


@pytest.mark.parametrize("examiner", [RejectionExtractor, RepeatedExpectedError])
def test_clean_exchanges_are_needed_behind_an_error_on_their_connection(examiner: Any) -> None:
    """Within a step and in later ones."""
    made = examiner(None, ObservationLog())
    found = made.needed(rows_of([1, 2, 1], [ApiKey.API_VERSIONS] * 3), np.array([False, True, True]))
    assert found.tolist() == [True, False, True]
    refused = DecodedExchange(
        0, 7, 0, 0, ApiKey.API_VERSIONS, 4, 0, 1, 1, (0, 0, 0), (1, 0, 0), lambda *_: {},
        lambda *_: ({}, [ErrorCode.UNSUPPORTED_VERSION]), has_errors=True,
    )  # fmt: skip
    made.examine_exchange(refused)
    found = made.needed(rows_of([7, 8], [ApiKey.API_VERSIONS] * 2), np.array([True, True]))
    assert found.tolist() == [True, False]


def test_of_clean_exchanges_of_groups_those_that_join_are_needed() -> None:
    rows = rows_of([1, 1, 1], [ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT, ApiKey.HEARTBEAT])
    sink: Any = ObservationLog()
    context: Any = None
    assert GroupExtractor(context, sink).needed(rows, np.array([True, True, False])).tolist() == [True, False, True]


def test_a_reader_from_a_checkpoint_knows_no_program_by_the_id_that_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the next process, another program may have that id."""
    monkeypatch.setattr(body_reader, "id", lambda _: 7, raising=False)
    with Capture([str(PCAPS / "java.pcapng")]) as capture:
        list(capture.read())
        index = capture.pipeline.indexer
        bodies = BodyColumns(index, capture.pipeline.store, show_secrets=True)
        kinds = (index.table.api_key.values == key for key in (ApiKey.METADATA, ApiKey.API_VERSIONS))
        first, second = (np.flatnonzero(of_kind & (index.table.response.values >= 0))[:1] for of_kind in kinds)
        reader = CleanResponses(bodies)
        assert reader.find(first).tolist() == [True]
        again = copy.copy(reader)
        assert again.find(second).tolist() == [True]
        assert again._wanted[7][0] is not reader._wanted[7][0]


def test_an_exchange_has_what_was_found_in_findings_severity_and_words(tmp_path: Path) -> None:
    talk = Talk()
    for at in (0, 1):
        heartbeat(talk, at, took=20, correlation_id=7)
    with Capture([written(tmp_path, talk)]) as capture:
        for _ in capture.read():
            pass
        assert capture.exchange(1).row.severity is None
        for _ in capture.findings.examine():
            pass
        for exchange in (capture.exchange(1), *capture.at(range(1, 2))):
            assert [finding.code for finding in exchange.findings] == ["duplicate-correlation-id"]
            assert exchange.row.severity is Severity.ERROR
            assert exchange.row.info == f"[duplicate-correlation-id] {exchange.row_findings[-1].message} · readers"
        assert capture.exchange(0).row.severity is None
        assert capture.has_warning(1)


def test_files_of_kafka_have_none_and_rows_behind_them_have_theirs(tmp_path: Path) -> None:
    [segment, *_] = sorted((PCAPS / "segments").rglob("*.log"))
    talk = Talk()
    for at in (0, 1):
        heartbeat(talk, at, took=20, correlation_id=7)
    with Capture([str(segment), written(tmp_path, talk)]) as capture:
        for _ in capture.read():
            pass
        steps = list(capture.findings.examine())
        [(row, _)] = capture.findings.cross_message()
        assert row == len(capture) - 1
        assert (steps[-1].done, steps[-1].total) == (len(capture), len(capture))
        assert [finding.code for finding in capture.exchange(row).findings] == ["duplicate-correlation-id"]


def test_so_many_of_a_code_are_kept_and_the_rest_is_counted() -> None:
    explained = Explanation("many", "Many", Severity.NOTE, "", "", "")
    found = FindingStore(most=3)
    reported = [found.report(explained, row, "once") for row in (5, 1, 3, 2, 4)]
    for open_finding in reported:
        open_finding.update("again")
    assert [(row, finding.message) for row, finding in found.all()] == [(1, "again"), (3, "again"), (5, "again")]
    assert found.take_omitted() == {"many": 2}
    assert found.take_omitted() == {}


@given(st.lists(st.integers(0, 9)))
def test_what_is_remembered_is_bounded_and_of_the_newest(keys: list[int]) -> None:
    recent: BoundedStates[int, list[int]] = BoundedStates(list, most=3)
    for key in keys:
        recent.of(key).append(1)
        assert len(recent) <= 3
    newest = list(dict.fromkeys(reversed(keys)))[:3]
    assert all(recent.of(key) for key in newest)


@pytest.mark.long
@cases("recorded", QUICK, ids=lambda path: path.stem)
def test_findings_say_where_in_the_exchange_they_are(recorded: Path) -> None:
    with Capture([str(recorded)]) as capture:
        for _ in capture.read():
            pass
        for _ in capture.findings.examine():
            pass
        for row, finding in capture.findings.cross_message():
            side, *fields = finding.path.replace("]", "").replace("[", ".").split(".")
            message = capture.exchange(row).request if side == "request" else capture.exchange(row).response
            assert message is not None
            value: object = {"header": message.header, "body": message.body}
            for field in fields:
                if field == "base_sequence":  # inside of the batch's bytes
                    break
                value = value[int(field)] if isinstance(value, list) else value[field]
            json.dumps(value, default=str)


def test_examined_rows_are_freed_without_a_search_for_garbage() -> None:
    gc.disable()
    try:
        rows = ExaminedRows(lambda _, _name: np.zeros(3, np.int64))
        chosen = rows.with_request.with_response
        assert (len(rows.unanswered.latency_ns), len(chosen.latency_ns)) == (0, 3)
        alive = [weakref.ref(each) for each in (rows, chosen)]
        del rows, chosen
        assert [each() for each in alive] == [None, None]
    finally:
        gc.enable()


def test_examined_rows_of_a_checkpoint_can_be_chosen_and_joined() -> None:
    rows = rows_of([1, 1, 2], [3, 0, 1])
    again = from_nodes(to_nodes(rows))
    assert isinstance(again, ExaminedRows)
    assert again.where(again.connection == 1).followed_by(rows).api_key.tolist() == [3, 0, 3, 0, 1]
    assert from_nodes(to_nodes(again)).connection.tolist() == [1, 1, 2]

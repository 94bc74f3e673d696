"""Findings of captures that are read in parts are those of the whole, whatever the parts and the steps of the pass."""

import random
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture_session import Capture
from dissector.conversation import End
from tests.conftest import PCAPS, costly
from tests.findings.conversations import Talk, fetch, heartbeat, produce, troubles, written
from tests.pipeline.test_exactness import dealt
from tests.pipeline.without_spark import differences, shown, shown_by_tables, tables
from tests.traffic import seeds

QUICK = sorted(path for path in PCAPS.glob("trouble-*.pcapng") if path.stem != "trouble-slow")
STEP: Final = "dissector.findings.framework.examination.STEP"
BUSY: Final = {
    "consumer-lag", "duplicate-correlation-id", "error-storm", "metadata-storm", "near-loss", "out-of-order-response",
    "rebalance-loop", "retried-batch", "sequence-gap", "slow", "throttled", "version-not-offered",
    "version-stepped-down",
}  # fmt: skip
"""What busy captures show, all together."""


def busy(folder: Path, chance: random.Random) -> str:
    """A capture of clients that share topics, groups and producers over several connections, and have every trouble."""
    talks = [Talk(number, f"client-{number}") for number in range(1, 6)]
    for talk in talks[3:]:
        talk.client = End(talks[0].client.host, talk.client.port)  # one client, several connections
    sequences: Counter[int] = Counter()
    for _ in range(600):
        now = 10.0 * sum(len(talk.turns) for talk in talks)
        happening(chance.choice(talks), now, chance, sequences)
    for talk in talks:
        talk.turns.sort(key=lambda turn: turn.time_ns)
    return written(folder, *talks)


def happening(talk: Talk, now: float, chance: random.Random, sequences: Counter[int]) -> None:
    """One more thing that a client does."""
    took = chance.choice([1.0] * 40 + [35.0, 300.0])
    match chance.randrange(12):
        case 0 | 1 | 2:
            heartbeat(talk, now, took, error=chance.choice([0, 0, 27]))
        case 3:
            heartbeat(talk, now, 35.0, correlation_id=chance.randrange(3))
        case 4 | 5 | 6:
            producer = chance.randrange(3)
            sequences[producer] += chance.choice([-2, 0, 0, 0, 0, 2])
            sequence = max(0, sequences[producer])
            error, throttle = chance.choice([0, 6]), chance.choice([0, 0, 40])
            produce(talk, now, 2, producer=(producer, 0, sequence), error=error, throttle=throttle)
            sequences[producer] = sequence + 2
        case 7:
            fetch(talk, now, 0, chance.randrange(500, 9_000), took=took)
        case 8:
            for at in range(chance.choice([1, 12])):
                talk.ask(now + at / 4, "Metadata", 12, {"topics": None}, {}, took=0.1)
        case 9:
            body = {"group_id": "readers", "session_timeout_ms": 10_000, "protocol_type": "consumer"}
            talk.ask(now, "JoinGroup", 5, body, {"generation_id": int(now), "member_id": "one"})
        case 10:
            talk.ask(now, "Heartbeat", 4, {"group_id": "readers", "generation_id": 1, "member_id": "one"})
            talk.lose(now + 1, 100)
        case _:
            version = chance.choice([1, 2, 3])
            offer = {"api_keys": [{"api_key": 12, "max_version": 3}], "error_code": 35 if version == 3 else 0}
            talk.ask(now, "ApiVersions", version, {}, offer)


@pytest.mark.long
@pytest.mark.slow
@costly(1)
@given(chance=seeds, step=st.integers(1, 300), how=dealt)
def test_cross_connection_findings_are_found_where_each_part_has_one_connection(
    tmp_path: Path, chance: random.Random, step: int, how: dict[str, Any]
) -> None:
    files = [Path(busy(tmp_path, chance))]
    expected = shown(files)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(STEP, step)
        assert not list(differences(expected, shown(files)))
        assert not list(differences(expected, shown_by_tables(tables(files, **how))))


@pytest.mark.exhaustive
@pytest.mark.slow
def test_busy_captures_show_every_trouble_however_they_are_read(tmp_path: Path) -> None:
    codes: set[str] = set()
    for seed in range(3):
        path = busy(tmp_path, random.Random(seed))
        codes |= {finding.code for _, finding in troubles(path)}
    assert codes >= BUSY
    assert not list(differences(shown([path]), shown_by_tables(tables([path], parts=4, size=20_000, most=100))))


@pytest.mark.long
@pytest.mark.slow
@costly(2)
@given(files=st.lists(st.sampled_from(QUICK), min_size=1, max_size=4, unique=True), step=st.integers(1, 300), how=dealt)
def test_neither_steps_nor_parts_make_a_difference(files: list[Path], step: int, how: dict[str, Any]) -> None:
    expected = shown(files)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(STEP, step)
        assert not list(differences(expected, shown(files)))
        assert not list(differences(expected, shown_by_tables(tables(files, **how))))


def test_of_a_part_all_findings_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissector.findings.framework.examination.MAX_FINDINGS", 2)
    talks = [Talk(number) for number in range(1, 6)]
    for number, talk in enumerate(talks):
        for at in (number, number + 0.5):
            heartbeat(talk, at, took=100, correlation_id=7)
    path = written(tmp_path, *talks)
    assert len(troubles(path)) == 2
    with Capture([path]) as capture:
        for _ in capture.read():
            pass
        for _ in capture.findings.examine(part=True):
            pass
        assert len(capture.findings.cross_message()) == 5

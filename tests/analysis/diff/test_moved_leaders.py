"""A leader that moves is the cluster's doing, and so is what a client does to follow it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.analysis.diff.editing import Lines, bundled, compared, edited, entry_texts, of
from tools.lab.survey.recording_files import recording_path

pytestmark = [pytest.mark.slow, pytest.mark.long]

REFUSALS = ('"error_code": 6,', '"error_code": 74,')
"""NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH."""
VALIDATION = "OffsetForLeaderEpoch"


def stayed(lines: Lines, *, validates: bool = False) -> Lines:
    """Let no leader move: nothing is refused, and what went to the new leader goes to the old one. Whether the client
    `validates` nevertheless."""
    refused = [line for line in lines if any(error in json.dumps(line.get("response")) for error in REFUSALS)]
    begins = {line["connection"]: line for line in reversed(lines)}
    later = {number for number, line in begins.items() if line["number"] > refused[0]["number"]}
    homes = {api: of(lines, api)[0] for api in ("Produce", "Fetch")}
    kept = []
    for line in lines:
        is_first = line["connection"] in later and line["api"] == "ApiVersions"
        if line in refused or is_first or (line["api"] == VALIDATION and not validates):
            continue
        if line["connection"] in later:
            line |= {name: homes.get(line["api"], homes["Fetch"])[name] for name in ("connection", "client", "server")}
        kept.append(line)
    return kept


@pytest.mark.parametrize("client", ["librdkafka-2.16", "kafka-python"])
def test_what_follows_a_leader_that_moves_is_no_difference(client: str, tmp_path: Path) -> None:
    path = str(recording_path(client, "leader-moved"))
    other = edited(path, tmp_path, stayed)
    assert entry_texts(compared(path, other)) == entry_texts(compared(other, path)) == []


def test_who_validates_positions_without_that_does_it_of_its_own_accord(tmp_path: Path) -> None:
    path = str(recording_path("librdkafka-2.16", "leader-moved"))
    (tmp_path / "validates").mkdir()
    quiet = edited(path, tmp_path, stayed)
    found = compared(quiet, edited(path, tmp_path / "validates", lambda lines: stayed(lines, validates=True)))
    assert [each[:3] for each in entry_texts(found)] == [(VALIDATION, "", "only on one side")]


def led_by(broker: int) -> Callable[[Lines], None]:
    """Let a broker lead all partitions, or none."""

    def edit(lines: Lines) -> None:
        for line in of(lines, "Metadata"):
            for topic in line["response"]["body"]["topics"]:
                for partition in topic["partitions"]:
                    partition["leader_id"] = broker
            line["response"]["body"]["controller_id"] = broker

    return edit


@pytest.mark.parametrize(("broker", "differs"), [(1, False), (2, False), (-1, True)])
def test_which_broker_leads_is_no_difference(broker: int, tmp_path: Path, *, differs: bool) -> None:
    path = bundled("compare-java-1")
    paths = {each[1] for each in entry_texts(compared(path, edited(path, tmp_path, led_by(broker))))}
    assert any("leader_id" in each or "controller_id" in each for each in paths) is differs

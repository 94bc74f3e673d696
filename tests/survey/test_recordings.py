"""The recordings of the survey: they decode, and each client recorded again is the same client."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from dissector.analysis.diff import DiffReason
from dissector.capture_session import Capture
from tests.analysis.diff.editing import Lines, compared, edited, entry_texts, of
from tests.survey.recorded import NAMES, each_client, held, parametrized, plain, text_of
from tools.lab.survey.clients import CLIENTS
from tools.lab.survey.earlier import EARLIER, EARLIER_SCENARIOS
from tools.lab.survey.recording_files import LARGEST, RECORDINGS, recording_path
from tools.lab.survey.scenarios import PLAIN, SCENARIOS

WRITERS = ("connect", "mirror-maker")
"""Their records have names and times of the run in them."""
each_release = parametrized([*NAMES, *(client.name for client in EARLIER)])


def again_of(client: str) -> list[str]:
    """Return the further recordings of a client's first task."""
    return [str(path) for number in (2, 3) if (path := recording_path(client, PLAIN, number)).exists()]


def test_every_client_is_in_every_scenario_that_it_can_do() -> None:
    expected = {
        recording_path(client.name, scenario.name, number)
        for client in CLIENTS
        for scenario in SCENARIOS
        if not client.refusal(scenario.name)
        for number in range(1, scenario.times + 1)
    } | {
        recording_path(client.name, scenario, number)
        for client in EARLIER
        for scenario, times in EARLIER_SCENARIOS.items()
        if not client.refusal(scenario)
        for number in range(1, times + 1)
    }
    found = set(RECORDINGS.glob("*/*.pcapng.zst"))
    assert found == expected
    assert all(path.with_name(path.name.replace(".pcapng.zst", ".provenance.json")).exists() for path in found)
    assert max(path.stat().st_size for path in found) < LARGEST


@pytest.mark.long
@pytest.mark.slow
@each_client
def test_no_message_of_any_recording_is_undecodable(client: str) -> None:
    with Capture(sorted(map(str, RECORDINGS.glob(f"{client}/*.zst")))) as capture:
        rows = list(capture.exchanges())
    kinds = Counter(row.fields.kind for row in rows)
    assert kinds.keys() == {"exchange"}
    assert not [row.fields for row in rows for each in (row.request, row.response) if each is not None and each.rest]


@each_release
def test_a_client_recorded_again_does_not_differ(client: str) -> None:
    again = again_of(client)
    assert again
    for path in again:
        found = entry_texts(compared(plain(client), path))
        assert [each for each in found if not (client.startswith(WRITERS) and each[2] == DiffReason.CONTENT)] == []


@each_release
def test_a_baseline_holds_a_client_recorded_again(client: str) -> None:
    text = text_of(plain(client))
    assert [held(text, path) for path in (plain(client), *again_of(client)) if held(text, path)] == []


@each_client
def test_a_baseline_catches_changed_settings(client: str) -> None:
    """As recorded with other acks, where the client has a choice, with gzip and another wait of fetches."""
    found = held(text_of(plain(client)), str(recording_path(client, "changed")))
    assert found["settings.compression"].endswith("→ gzip")
    assert found["settings.fetch max wait (ms)"].endswith("→ 187" if client == "kafka-go" else "→ 250")
    assert ("settings.acks" in found) is (client != "rskafka")


def older(lines: Lines) -> None:
    """One request for all topics in an older version."""
    line = of(lines, "Metadata")[-1]
    line["api_version"] -= 1
    line["request"]["header"]["request_api_version"] -= 1
    line["request"]["body"], line["response"]["body"] = {"topics": None}, {}


def impatient(lines: Lines) -> None:
    for line in of(lines, "Fetch"):
        line["request"]["body"]["max_wait_ms"] = 1


def failing(pause_ns: int) -> Callable[[Lines], None]:
    """The first Fetch fails, and all that follows comes later."""

    def edit(lines: Lines) -> None:
        failed = of(lines, "Fetch")[0]
        failed["response"]["body"]["responses"][0]["partitions"][0]["error_code"] = 6
        end_ns = failed["response"]["time_ns"]
        for line in lines:
            for part in ("request", "response"):
                if line[part] and line[part]["time_ns"] > end_ns:
                    line[part]["time_ns"] += pause_ns

    return edit


@each_client
@pytest.mark.parametrize(("edit", "rule"), [(older, "versions.Metadata"), (impatient, "settings.fetch max wait (ms)")])
def test_a_baseline_catches_an_edit(
    client: str, edit: Callable[[Lines], Lines | None], rule: str, tmp_path: Path
) -> None:
    assert rule in held(text_of(plain(client)), edited(plain(client), tmp_path, edit))


@each_client
def test_a_baseline_catches_another_back_off(client: str, tmp_path: Path) -> None:
    text = text_of(edited(plain(client), tmp_path, failing(100_000_000)))
    assert "retry back-off" in text
    assert "times.retry back-off" in held(text, edited(plain(client), tmp_path, failing(3_000_000_000)))

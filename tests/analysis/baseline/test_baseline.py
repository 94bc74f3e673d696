"""A baseline stands the same program recorded again, and catches what a client changed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.analysis.baseline import (
    Baseline,
    BaselineError,
    choices,
    hold,
    observe,
    read_baseline,
    write_baseline,
)
from dissector.analysis.baseline.baseline import SETTINGS, TIMES
from dissector.analysis.baseline.holding import SOFTWARE, count_checks, is_same_time
from dissector.analysis.diff.matching_keys import MatchingKey
from dissector.analysis.diff.side_profile import SideProfile
from dissector.analysis.outcomes import RuleOutcome, RuleStatus
from tests.analysis.diff.cutting import recording
from tests.analysis.diff.editing import Lines, bundled, edited, of, side
from tests.cases import cases

CLIENTS = ("java", "librdkafka", "kafka-python", "aiokafka")


def profile(path: str) -> SideProfile:
    return SideProfile(side(path), {}, {})


def held(path: str, text: str, **words: frozenset[str]) -> list[RuleOutcome]:
    baseline, lines = read_baseline(text)
    return hold(profile(path), baseline, lines, file="orders.toml", **words)


def text_of(path: str) -> str:
    return write_baseline(observe(profile(path))[0])


def changed(outcomes: list[RuleOutcome]) -> dict[str, str]:
    return {each.rule: each.message for each in outcomes if each.status is RuleStatus.BROKEN}


@pytest.mark.parametrize("client", CLIENTS)
def test_the_same_program_recorded_again_holds(client: str) -> None:
    text = text_of(bundled(f"compare-{client}-1"))
    outcomes = held(bundled(f"compare-{client}-2"), text)
    assert len(outcomes) == count_checks(read_baseline(text)[0])
    assert len(outcomes) >= 25
    assert {each.status for each in outcomes} == {RuleStatus.HELD}


@pytest.mark.long
def test_other_clients_do_not_hold() -> None:
    texts = {client: text_of(bundled(f"compare-{client}-1")) for client in CLIENTS}
    for client, text in texts.items():
        for other in set(CLIENTS) - {client}:
            assert len(changed(held(bundled(f"compare-{other}-1"), text))) >= 5, (client, other)


def newer(lines: Lines) -> None:
    for line in of(lines, "Heartbeat"):
        line["api_version"] = line["request"]["header"]["request_api_version"] = 3


def acks(lines: Lines) -> None:
    for line in of(lines, "Produce"):
        line["request"]["body"]["acks"] = 1


def waits(lines: Lines) -> None:
    for line in of(lines, "Fetch"):
        line["request"]["body"]["max_wait_ms"] = 100


def timeout(lines: Lines) -> None:
    of(lines, "JoinGroup")[0]["request"]["body"]["session_timeout_ms"] = 10_000


def leaves_silently(lines: Lines) -> Lines:
    return [line for line in lines if line["api"] != "LeaveGroup"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edit", "rule", "message"),
    [
        (newer, "versions.Heartbeat", "v4 → v3"),
        (acks, "settings.acks", "-1 ALL → 1 LEADER"),
        (waits, "settings.fetch max wait (ms)", "500 → 100"),
        (timeout, "settings.session timeout (ms)", "45000 → 10000, 45000"),
        (leaves_silently, "versions.LeaveGroup", "v5 → not requested"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_a_change_is_caught(edit: Callable[[Lines], Lines | None], rule: str, message: str, tmp_path: Path) -> None:
    text = text_of(bundled("compare-java-1"))
    found = changed(held(edited(bundled("compare-java-1"), tmp_path, edit), text))
    assert found[rule] == message
    consequences = {"settings.shutdown"} if edit is leaves_silently else set()
    assert set(found) == {rule} | consequences


def test_a_codec_is_caught() -> None:
    text = text_of(bundled("compare-java-1")).replace('compression = "none"', 'compression = "lz4"')
    assert changed(held(bundled("compare-java-1"), text)) == {"settings.compression": "lz4 → none"}


@pytest.mark.parametrize(
    ("ms", "is_held"),
    [(117, True), (80, True), (180, True), (1_000, False), (10, False), (190, False), (72, False)],
)
def test_back_offs_are_equal_within_what_clients_vary(ms: int, is_held: bool) -> None:
    text = text_of(bundled("compare-java-1"))
    found = changed(held(bundled("compare-java-1"), text.replace('(ms)" = 117', f'(ms)" = {ms}')))
    assert ("times.retry back-off" not in found) is is_held


@cases(("before", "after", "is_held"), [(0, 20, True), (5, 25, True), (0, 21, False), (25, 5, True), (26, 5, False)])
def test_short_times_are_equal_within_the_noise_of_a_machine(before: int, after: int, is_held: bool) -> None:
    assert is_same_time(before * 1_000_000, after * 1_000_000) is is_held


def test_what_the_capture_does_not_show_is_not_seen() -> None:
    text = text_of(bundled("compare-java-1"))
    outcomes = {each.rule: each.status for each in held(bundled("trouble-tiny-batches"), text)}
    assert outcomes["settings.session timeout (ms)"] is RuleStatus.NOT_SEEN
    assert outcomes["times.heartbeat interval"] is RuleStatus.NOT_SEEN
    assert outcomes["versions.JoinGroup"] is RuleStatus.BROKEN


def test_each_line_names_its_place_in_the_text_and_an_exchange() -> None:
    text = text_of(bundled("compare-java-1"))
    outcomes = held(bundled("compare-librdkafka-1"), text)
    lines = text.splitlines()
    for each in outcomes:
        if each.rule == "settings.isolation level":
            assert each.line is not None
            assert lines[each.line - 1].startswith('"isolation level" =')
            assert each.exchange == 25
    assert all(each.line for each in outcomes if not each.message.startswith("not requested →"))


def test_names_choose_what_counts_and_what_is_left_out() -> None:
    text = text_of(bundled("compare-java-1"))
    other = bundled("compare-librdkafka-1")
    only_acks, unknown = choices(["acks", "retries"])
    assert not unknown
    assert not changed(held(other, text, fail_on=only_acks))
    versions, _ = choices(["version"])
    assert all(rule.startswith("versions.") for rule in changed(held(other, text, fail_on=versions)))
    without, _ = choices(["Fetch", "settings", "Fetch Max Wait"])
    rules = {each.rule for each in held(other, text, ignored=without)}
    assert "versions.Fetch" not in rules
    assert not any(rule.startswith("settings.") for rule in rules)
    for words in ("client", "software", "client.software"):
        upgrade, _ = choices([words])
        assert set(changed(held(other, text, fail_on=upgrade))) == {SOFTWARE}
        assert not [each for each in held(other, text, ignored=upgrade) if each.rule == SOFTWARE]
    assert choices(["nonsense"]) == (frozenset(), ["nonsense"])


def test_a_line_that_is_deleted_is_not_asked_for() -> None:
    text = text_of(bundled("compare-java-1"))
    kept = [line for line in text.splitlines() if not line.startswith(("idempotence", '"isolation'))]
    found = changed(held(bundled("compare-librdkafka-1"), "\n".join(kept)))
    assert not {"settings.idempotence", "settings.isolation level"} & set(found)
    no_versions = text.partition("[versions]")[0]
    assert not any(rule.startswith("versions.") for rule in changed(held(bundled("compare-librdkafka-1"), no_versions)))


@pytest.mark.long
@pytest.mark.slow
@given(
    software=st.text(), versions=st.dictionaries(st.text(min_size=1), st.text()),
    settings=st.dictionaries(st.sampled_from(sorted(SETTINGS)), st.text()),
    times=st.dictionaries(st.sampled_from(sorted(TIMES)), st.integers(0, 10**9)),
)  # fmt: skip
def test_any_text_comes_back(
    software: str, versions: dict[str, str], settings: dict[str, str], times: dict[str, int]
) -> None:
    baseline = Baseline(software, versions, settings, {name: ms * 1_000_000 for name, ms in times.items()})
    assert read_baseline(write_baseline(baseline))[0] == baseline


@cases("quoted", ['"{}"', "'{}'", '"\\"{}"', '"\'{}"'])
def test_a_text_may_have_any_number_of_dots(quoted: str) -> None:
    dots = "." * 1000
    text = f"# {dots}\n[client]\nsoftware = {quoted.format(dots)} # {dots}"
    assert read_baseline(text)[0].software.endswith(dots)


@cases(
    ("text", "words"),
    [
        ("acks", "not TOML"),
        ("[setings]", r"\[setings\]: a baseline has the tables"),
        ("settings = 3", "settings is not a table"),
        ("[settings]\nacks = 1", "settings: 'acks' must be text"),
        ("[settings]\nakcs = '1'", "settings: unknown name 'akcs'; known are APIs without responses, "),
        ('[times]\n"retry back-off (ms)" = "1"', "must be a whole number"),
        ("[times]\nretry = 1", "times: unknown name 'retry'; known are"),
        (f"{'a.' * 100}a = 1", r"\[a\]: a baseline has the tables"),
        (f"{'a.' * 101}a = 1", "nested too deeply"),
        (f"[{'a.' * 30_000}a]", "nested too deeply"),
        (f"a = {{ {'a.' * 30_000}a = 1 }}", "nested too deeply"),
        (f"a = {'[' * 60_000}", "nested too deeply"),
        (f"a = {'9' * 5000}", "not TOML"),
        ("#" * 65_537, "more than 65,536 characters"),
    ],
)
def test_a_text_that_is_no_baseline_is_told(text: str, words: str) -> None:
    with pytest.raises(BaselineError, match=words) as raised:
        read_baseline(text)
    assert "\n" not in str(raised.value)


def test_a_baseline_has_the_group_protocol_of_kip_848() -> None:
    baseline = observe(profile(bundled("java-kip848")))[0]
    assert baseline.settings["group protocol"] == "consumer"
    assert int(baseline.settings["heartbeat interval (ms)"]) > 0
    assert "leaves the group" in baseline.settings["shutdown"]
    lines = held(bundled("java-classic"), write_baseline(baseline))
    assert changed(lines)["settings.group protocol"] == "consumer → classic"


def request(api: str, field: str, value: object) -> Callable[[Lines], None]:
    """Set a field in all requests of an API, wherever it is."""

    def change(found: Any) -> None:
        for each in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
            change(each)
        if isinstance(found, dict) and field in found:
            found[field] = value

    def edit(lines: Lines) -> None:
        for line in of(lines, api):
            change(line["request"]["body"])

    return edit


@pytest.mark.long
@cases(
    ("api", "field", "value", "name"),
    [
        ("Produce", "acks", 1, "acks"),
        ("Fetch", "min_bytes", 1_000, "fetch min bytes"),
        ("Fetch", "isolation_level", 1, "isolation level"),
        ("Fetch", "rack_id", "r1", "client rack"),
        ("ListOffsets", "timestamp", -1, "offset reset"),
        ("JoinGroup", "session_timeout_ms", 10_000, "session timeout (ms)"),
        ("JoinGroup", "rebalance_timeout_ms", 10_000, "rebalance timeout (ms)"),
        ("JoinGroup", "group_instance_id", "host-1", "static membership"),
        ("Metadata", "allow_auto_topic_creation", False, "auto topic creation"),
    ],
)
def test_each_setting_changes_the_line_that_names_it(
    api: str, field: str, value: object, name: str, tmp_path: Path
) -> None:
    text = text_of(bundled("compare-java-1"))
    found = changed(held(edited(bundled("compare-java-1"), tmp_path, request(api, field, value)), text))
    assert set(found) == {f"settings.{name}"}


@pytest.mark.parametrize("client", ["java-4.3", "librdkafka-2.16", "kafkajs", "franz-go"])
def test_a_baseline_stands_a_program_that_is_recorded_again(client: str) -> None:
    text = text_of(str(recording(client, "plain-1")))
    for name in ("plain-2", "plain-3"):
        assert changed(held(str(recording(client, name)), text)) == {}


@pytest.mark.long
@pytest.mark.slow
def test_pauses_that_end_with_what_happens_are_no_back_off() -> None:
    """Java's admin asks for offsets again whenever it has other metadata: 70 ms later in one run, 7 ms in another. The
    second one asks for metadata again after regular pauses, too."""
    paths = [str(recording("mirror-maker-3.4", f"plain-{n}")) for n in (1, 2)]
    lookups = MatchingKey(0, "ListOffsets", (), "")
    assert [min(profile(path).keys[lookups].retries.backoffs_ns) // 1_000_000 for path in paths] == [70, 6]
    lines = [[line for line in text_of(path).splitlines() if "back-off" in line] for path in paths]
    assert lines == [[], ['"retry back-off (ms)" = 120']]

"""Rules as text: what they mean, that they are written as they are read, and what is said of those that are none."""

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.schema.error_codes import ErrorCode
from dissector.proxy_server.faults.actions import (
    ACTIONS,
    CloseFault,
    CorruptFault,
    DelayFault,
    DropFault,
    ErrorFault,
    FaultAction,
    OfferFault,
    SlowFault,
    ThrottleFault,
)
from dissector.proxy_server.faults.errors import FaultError
from dissector.proxy_server.faults.files import FaultFileError, read_file
from dissector.proxy_server.faults.rules import FaultRule, read_rule
from dissector.proxy_server.faults.triggers import NAMES, After, Every, FaultTrigger, First, For, Probability
from dissector.proxy_server.faults.words import FASTEST, LONGEST_NS, MOST_COUNT
from tests.cases import cases

COUNTS = st.integers(1, MOST_COUNT)
TIMES = st.integers(1, LONGEST_NS)


def _share(billionths: int) -> Fraction:
    [trigger] = read_rule(f"drop, probability {billionths / 10**9:.9f}").triggers
    assert isinstance(trigger, Probability)
    return trigger.share


SHARES = st.integers(1, 10**9).map(_share)
ACTION = st.one_of(
    TIMES.map(DelayFault),
    TIMES.map(ThrottleFault),
    st.builds(ErrorFault, st.sampled_from([each for each in ErrorCode if each]), st.booleans()),
    st.builds(CloseFault, st.booleans()),
    st.builds(DropFault, st.booleans()),
    st.builds(OfferFault, st.just(((1, 11), (0, -1)))),
    st.just(CorruptFault()),
    st.integers(1, FASTEST).map(SlowFault),
)
TRIGGER = st.one_of(
    COUNTS.map(First), COUNTS.map(After), COUNTS.map(Every), TIMES.map(For),
    st.builds(Probability, SHARES, st.integers(0, MOST_COUNT)),
)  # fmt: skip
FILTERS = st.sampled_from(
    ["", "api == Produce", 'topic == "a: b, c"', "client == 127.0.0.1:9092", "conn == C1 || !group"]
)


@given(FILTERS, ACTION, st.lists(TRIGGER, max_size=3).map(tuple))
def test_a_rule_is_written_as_it_is_read(filter: str, action: FaultAction, triggers: tuple[FaultTrigger, ...]) -> None:
    rule = FaultRule(filter, action, triggers)
    assert read_rule(str(rule)) == rule


@given(
    st.text(max_size=80)
    | st.lists(st.sampled_from([*ACTIONS, *NAMES, ":", ",", " ", "3", "1s", "api == Fetch"])).map("".join)
)
def test_any_text_is_a_rule_or_an_error_of_one_line(text: str) -> None:
    rule = said = None
    try:
        rule = read_rule(text)
    except FaultError as error:
        said = error
    if rule is not None:
        assert read_rule(str(rule)) == rule
    if said is not None:
        assert 0 <= said.column <= len(text)
        assert str(said).isprintable()


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("delay 200ms", FaultRule("", DelayFault(200_000_000))),
        ("  api == Fetch :  slow 64kB/s ,for 30s, always",
         FaultRule("api == Fetch", SlowFault(64_000), (For(30 * 10**9),))),
        ("api == Produce: error not_leader_or_follower acted, first 3",
         FaultRule("api == Produce", ErrorFault(ErrorCode.NOT_LEADER_OR_FOLLOWER, acted=True), (First(3),))),
        ("client == 10.0.0.1:5000: close before", FaultRule("client == 10.0.0.1:5000", CloseFault())),
        ("offer Fetch<=11 Produce <= -1", FaultRule("", OfferFault(((1, 11), (0, -1))))),
        ("error != NONE: drop after", FaultRule("error != NONE", DropFault(after=True))),
    ],
)  # fmt: skip
def test_what_rules_mean(text: str, rule: FaultRule) -> None:
    assert read_rule(text) == rule


@cases(
    ("text", "words"),
    [
        ("", "column 1: the action is missing: delay, error"),
        ("api == Produce", "column 1: write a rule as FILTER: ACTION"),
        ("api == Fecth: drop", "column 8: unknown API 'Fecth'; did you mean Fetch"),
        ("  api == Fecth: drop", "column 10: unknown API"),
        (": drop", "column 1: the filter before the colon is missing"),
        ("api == Fetch: dealy 3s", "column 15: unknown action 'dealy'; did you mean delay"),
        ("api == Fetch: delay", "column 15: after 'delay' comes a duration"),
        ("api == Fetch: delay 3", "column 21: 3 needs a unit: 3ms, 3s"),
        ("api == Fetch: delay 0ms", "column 21: 0ms is not a duration above 0"),
        ("api == Fetch: delay 25h", "column 21: 25h is not a duration"),
        ("api == Fetch: delay 3s 4s", "column 24: after 'delay' comes"),
        (
            "api == Fetch: error NOT_A_LEADER, first 3",
            "column 21: unknown error 'NOT_A_LEADER'; did you mean NOT_LEADER",
        ),
        ("api == Fetch: delay 3s first 3", "column 24: a comma is missing before 'first'"),
        ("api == Fetch: close, first 3 for 5s", "column 30: a comma is missing before 'for'"),
        ("api == Fetch: close after, frist 3", "column 28: unknown trigger 'frist'; did you mean first"),
        (
            "api == Fetch: error NOT_LEADER",
            "column 21: unknown error 'NOT_LEADER'; did you mean NOT_LEADER_OR_FOLLOWER",
        ),
        ("api == Fetch: error NONE", "column 21: unknown error 'NONE'"),
        ("api == Fetch: close later", "column 21: 'later' is neither 'before' nor 'after'"),
        ("api == Fetch: slow 64kB", "column 20: '64kB' is not a rate"),
        ("slow 64kB/m", "column 6: '64kB/m' is not a rate"),
        ("slow 0B/s", "column 6: 0B/s is not a rate above 0"),
        ("offer Fetch", "column 7: 'offer' needs APIs"),
        ("offer Fecth<=3", "column 7: unknown API 'Fecth'; did you mean Fetch"),
        ("offer ApiVersions<=-1", "column 7: ApiVersions can't be omitted"),
        ("drop, frist 3", "column 7: unknown trigger 'frist'; did you mean first"),
        ("drop, first 0", "column 13: '0' is not a whole number from 1"),
        ("drop, first 1000000001", "column 13: '1000000001' is not a whole number"),
        ("drop, probability 1.1", "column 19: '1.1' is not a probability"),
        ("drop, probability 0", "column 19: '0' is not a probability"),
        ("drop, first 1,", "column 15: the trigger after the comma is missing"),
        ("latency > 1s: delay 1s", "column 1: a fault can't ask for latency"),
        ('finding == "slow": drop', "column 1: a fault can't ask for finding"),
        ("error: drop", "column 1: drop comes before the response, for which the filter asks; did you mean drop after"),
        ("response.throttle_time_ms > 0: close", "close comes before the response"),
        ("error: slow 1B/s", "slow 1B/s comes before the response, for which the filter asks"),
    ],
)
def test_what_is_said_of_a_rule_that_is_none(text: str, words: str) -> None:
    with pytest.raises(FaultError) as raised:
        read_rule(text)
    assert words in str(raised.value)


def test_a_file_of_rules(tmp_path: Path) -> None:
    path = tmp_path / "faults.toml"
    path.write_text('[[fault]]\nname = "late"\nrule = "api == Fetch: delay 1s"\n[[fault]]\nrule = "drop, every 9"\n')
    assert [(each.name, str(each)) for each in read_file(str(path))] == [
        ("late", "api == Fetch: delay 1s"), ("", "drop, every 9"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no [[fault]]"),
        ("fault = 3", "no [[fault]]"),
        ("fault = [3]", "fault 1: rule = '…' is missing"),
        ("[[fault]]\nname = 'x'", "fault 1: rule = '…' is missing"),
        ("[[fault]]\nrule = 'drop'\n[[fault]]\nrule = 'drp'", "fault 2: column 1: write a rule as FILTER: ACTION"),
        ("[[fault]]\nrule = 'drop'\nfirst = 3", "fault 1: unknown key first"),
        ("[[fault]]\nrule = 'drop'\nname = 3", "fault 1: its name is no text"),
        ("[[fault]]\nrule = 'drop'\nname = 'a (b'", "fault 1: column 1: 'a (b' is not a name"),
        ("[[fault]]\nrule = 'drop'\nname = 'a'\n" * 2, "two rules have the name a"),
        ("[[fault]\n", "Expected"),
        ("x = " + "[" * 5000, "nested too deeply"),
        (f"[{'a.' * 101}a]", "nested too deeply"),
        ("x = " + "9" * 5000, "not TOML: Exceeds the limit (4300 digits)"),
    ],
)
def test_what_is_said_of_a_file_that_is_none(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "faults.toml"
    path.write_text(text)
    with pytest.raises(FaultFileError) as raised:
        read_file(str(path))
    assert words in str(raised.value)
    assert str(raised.value).startswith(str(path))
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(FaultFileError, match="no such file"):
        read_file("missing.toml")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "faults.toml"
    path.write_bytes(b"\xff")
    with pytest.raises(FaultFileError, match="not UTF-8"):
        read_file(str(path))

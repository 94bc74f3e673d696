"""JUnit and SARIF of outcomes, as those who read them want it."""

from xml.etree import ElementTree

from dissector.analysis.outcomes import RuleOutcome, RuleStatus, junit, sarif

OUTCOMES = [
    RuleOutcome("versions.Fetch", RuleStatus.HELD, "v18", "orders.toml", 30),
    RuleOutcome("settings.acks", RuleStatus.BROKEN, "-1 ALL → 1 <LEADER>\x1b[31m\x00", "a b/o.toml", 8, 12, "KIP-679"),
    RuleOutcome("settings.compression", RuleStatus.ALLOWED, "none → lz4", "orders.toml", 9, 12),
    RuleOutcome("times.retry back-off", RuleStatus.NOT_SEEN, "100 ms; the capture shows none", "orders.toml", 20),
]  # fmt: skip


def test_junit_has_a_case_for_each_rule() -> None:
    [suite] = ElementTree.fromstring(junit("orders held to orders.toml", OUTCOMES))
    assert {name: suite.get(name) for name in ("tests", "failures", "skipped", "errors")} == {
        "tests": "4", "failures": "1", "skipped": "1", "errors": "0",
    }  # fmt: skip
    cases = {(case.get("classname"), case.get("name")): case for case in suite}
    assert not list(cases["versions", "Fetch"])
    failure = cases["settings", "acks"].find("failure")
    assert failure is not None
    assert failure.text is not None
    assert "exchange 12; KIP-679" in failure.text
    assert "\x1b" not in failure.text
    assert cases["times", "retry back-off"].find("skipped") is not None


def test_sarif_has_a_result_for_each_broken_rule_at_its_line() -> None:
    value = sarif(OUTCOMES)
    assert value["version"] == "2.1.0"
    [run] = value["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["settings.acks", "settings.compression"]
    broken, allowed = run["results"]
    assert (broken["level"], allowed["level"]) == ("error", "note")
    place = broken["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "a%20b/o.toml"}, "region": {"startLine": 8}}
    assert broken["properties"] == {"exchange": 12, "source": "KIP-679"}
    assert "\x1b" not in broken["message"]["text"]

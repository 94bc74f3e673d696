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


RULE = RuleOutcome(
    "throttle-time", RuleStatus.BROKEN, "request, bytes 0 to 9: it waited 94 µs", "a.pcapng", None, 1_400, "KIP-219",
    "a client that is throttled waits", "librdkafka 2.16",
)  # fmt: skip


def test_rules_that_two_clients_break_are_one_rule_with_two_results() -> None:
    """A code host groups by rule, so a client is no part of its name."""
    [run] = sarif([RULE, RULE._replace(client="sarama 1")])["runs"]
    [rule] = run["tool"]["driver"]["rules"]
    assert rule == {
        "id": "throttle-time", "shortDescription": {"text": RULE.title}, "help": {"text": "KIP-219"},
    }  # fmt: skip
    assert [each["message"]["text"] for each in run["results"]] == [
        f"{client}: exchange 1,400: request, bytes 0 to 9: it waited 94 µs"
        for client in ("librdkafka 2.16", "sarama 1")
    ]
    [suite] = ElementTree.fromstring(junit("kdissect check", [RULE]))
    [case] = suite
    assert (case.get("classname"), case.get("name")) == ("librdkafka 2.16", "throttle-time")


def test_a_log_has_what_the_schema_of_sarif_requires() -> None:
    """Required by sarif-schema-2.1.0.json: of the log, its runs, the driver, rules, results and their messages."""
    value = sarif([*OUTCOMES, RULE])
    assert {"version", "runs"} <= value.keys()
    for run in value["runs"]:
        driver = run["tool"]["driver"]
        assert driver["name"]
        ids = [rule["id"] for rule in driver["rules"]]
        assert len(ids) == len(set(ids))
        for result in run["results"]:
            assert result["message"]["text"]
            assert result["ruleId"] in ids
            assert result["level"] in ("none", "note", "warning", "error")
            for place in result["locations"]:
                assert not set(place["physicalLocation"]["artifactLocation"]["uri"]) & set(' <>"{}|\\^`')
                assert place["physicalLocation"].get("region", {"startLine": 1})["startLine"] >= 1


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


def test_sarif_names_files_by_their_bytes() -> None:
    [run] = sarif([RULE._replace(file="\udcff\x1b é.pcap")])["runs"]
    [result] = run["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "%FF%1B%20%C3%A9.pcap"

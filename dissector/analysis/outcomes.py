"""Outcomes of rules that a capture is held to, and the forms in which other programs read them: JUnit XML, with a test
case each, as CI servers read it; SARIF 2.1.0 (OASIS), as code hosts show it beside the changed lines."""

import os
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from dissector.core.text import clean
from dissector.core.version import version


class RuleStatus(StrEnum):
    """Whether a capture keeps a rule."""

    HELD = "held"
    BROKEN = "broken"
    ALLOWED = "allowed"
    """Broken, and the user does not mind."""
    NOT_SEEN = "not seen"
    """Nothing in the capture to hold it to."""


class RuleOutcome(NamedTuple):
    """The outcome for one rule. Texts are as on the wire: clean them before you print them.

    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile("w", suffix=".toml") as file:
    ...     _ = file.write(capture.baseline().replace('acks = "-1 ALL"', 'acks = "1"')), file.flush()
    ...     broken = [each for each in capture.held_to(file.name) if each.status == "broken"]
    >>> [isinstance(each, dissector.RuleOutcome) for each in broken], broken[0].rule
    ([True], 'settings.acks')
    """

    rule: str
    """Its name: ``versions.Fetch``."""
    status: RuleStatus
    message: str
    """What is so, or what is different."""
    file: str
    """The file that shows it, or that has the rule."""
    line: int | None = None
    """In that file, from 1; of text files."""
    exchange: int | None = None
    """The number of the first exchange that shows it, from 1."""
    source: str = ""
    """Where the rule comes from: a KIP, a schema file."""
    title: str = ""
    """What the rule requires."""
    client: str = ""
    """The client that it is held to, where a capture has several."""


def junit(suite: str, outcomes: Sequence[RuleOutcome]) -> bytes:
    """Return a test suite; a broken rule is a failure, one without anything to hold it to is skipped."""
    return junit_suites([(suite, outcomes)])


def junit_suites(suites: Sequence[tuple[str, Sequence[RuleOutcome]]]) -> bytes:
    """Return test suites, each with its name."""
    from xml.etree.ElementTree import Element, SubElement, tostring  # on use: few runs write XML

    root = Element("testsuites")
    for suite, outcomes in suites:
        suite_element = SubElement(
            root, "testsuite", name=clean(suite), tests=str(len(outcomes)), errors="0",
            failures=str(sum(each.status is RuleStatus.BROKEN for each in outcomes)),
            skipped=str(sum(each.status is RuleStatus.NOT_SEEN for each in outcomes)),
        )  # fmt: skip
        for each in outcomes:
            group, _, name = each.rule.rpartition(".")
            case = SubElement(
                suite_element, "testcase", classname=clean(each.client or group or suite), name=clean(name)
            )
            if each.status is RuleStatus.BROKEN:
                SubElement(case, "failure", message=clean(each.message)).text = clean(_details(each))
            elif each.status is RuleStatus.NOT_SEEN:
                SubElement(case, "skipped", message=clean(each.message))
            elif each.status is RuleStatus.ALLOWED:
                SubElement(case, "system-out").text = clean(f"allowed: {each.message}")
    text: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return text


def _details(outcome: RuleOutcome) -> str:
    where = f"exchange {outcome.exchange:,}" if outcome.exchange else ""
    return "; ".join(filter(None, (outcome.title, outcome.message, where, outcome.source)))


SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {RuleStatus.BROKEN: "error", RuleStatus.ALLOWED: "note"}


def sarif(outcomes: Sequence[RuleOutcome]) -> dict[str, Any]:
    """Return a log with one run: a result for each rule that is broken."""
    broken = [each for each in outcomes if each.status in _LEVELS]
    rules = [_rule(each) for each in {each.rule: each for each in reversed(broken)}.values()][::-1]
    driver = {"name": "kdissect", "version": version("kafka-dissector"), "rules": rules}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_result(each) for each in broken]}],
    }


def _rule(outcome: RuleOutcome) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": clean(outcome.rule)}
    if outcome.title:
        rule["shortDescription"] = {"text": clean(outcome.title)}
    if outcome.source:
        rule["help"] = {"text": clean(outcome.source)}
    return rule


def _result(outcome: RuleOutcome) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(os.fsencode(outcome.file))}}
    if outcome.line is not None:
        place["region"] = {"startLine": outcome.line}
    result: dict[str, Any] = {
        "ruleId": clean(outcome.rule),
        "level": _LEVELS[outcome.status],
        "message": {"text": clean(_message(outcome))},
        "locations": [{"physicalLocation": place}],
    }
    found = {"exchange": outcome.exchange, "source": clean(outcome.source) or None}
    if properties := {name: value for name, value in found.items() if value is not None}:
        result["properties"] = properties
    return result


def _message(outcome: RuleOutcome) -> str:
    """Return what is wrong, with the client and the exchange where the file alone does not say it."""
    exchange = f"exchange {outcome.exchange:,}" if outcome.client and outcome.exchange else ""
    return ": ".join(filter(None, (outcome.client, exchange, outcome.message)))

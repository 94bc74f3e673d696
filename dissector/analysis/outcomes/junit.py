"""Outcomes as JUnit XML: a test case each, as CI servers read it."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, tostring

from dissector.analysis.outcomes.outcome import RuleOutcome, RuleStatus
from dissector.core.text import clean


def junit(suite: str, outcomes: Sequence[RuleOutcome]) -> bytes:
    """Return a test suite; a broken rule is a failure, one without anything to hold it to is skipped."""
    suite_element = Element(
        "testsuite", name=clean(suite), tests=str(len(outcomes)), errors="0",
        failures=str(sum(each.status is RuleStatus.BROKEN for each in outcomes)),
        skipped=str(sum(each.status is RuleStatus.NOT_SEEN for each in outcomes)),
    )  # fmt: skip
    for each in outcomes:
        group, _, name = each.rule.rpartition(".")
        case = SubElement(suite_element, "testcase", classname=clean(each.client or group or suite), name=clean(name))
        if each.status is RuleStatus.BROKEN:
            SubElement(case, "failure", message=clean(each.message)).text = clean(_details(each))
        elif each.status is RuleStatus.NOT_SEEN:
            SubElement(case, "skipped", message=clean(each.message))
        elif each.status is RuleStatus.ALLOWED:
            SubElement(case, "system-out").text = clean(f"allowed: {each.message}")
    root = Element("testsuites")
    root.append(suite_element)
    text: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return text


def _details(outcome: RuleOutcome) -> str:
    where = f"exchange {outcome.exchange:,}" if outcome.exchange else ""
    return "; ".join(filter(None, (outcome.title, outcome.message, where, outcome.source)))

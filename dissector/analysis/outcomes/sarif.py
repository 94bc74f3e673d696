"""Outcomes as SARIF 2.1.0 (OASIS), as code hosts show it beside the changed lines."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import quote

from dissector.analysis.outcomes.outcome import RuleOutcome, RuleStatus
from dissector.core.text import clean

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
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(outcome.file)}}
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

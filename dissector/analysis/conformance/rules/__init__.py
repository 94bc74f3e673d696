"""All rules, a module for each part of the protocol. A new one is a function or a class in one."""

from typing import Final

from dissector.analysis.conformance.rule import ProtocolRule
from dissector.analysis.conformance.rules import (
    answers,
    cluster,
    fetch,
    forwarding,
    frames,
    groups,
    logins,
    member_epochs,
    produce,
    records,
    retries,
)
from dissector.core.suggestions import did_you_mean

RULES: Final[tuple[ProtocolRule, ...]] = (
    *frames.RULES, *answers.RULES, *logins.RULES, *produce.RULES, *fetch.RULES, *records.RULES, *groups.RULES,
    *member_epochs.RULES, *cluster.RULES, *retries.RULES, *forwarding.RULES,
)  # fmt: skip


def a_rule(word: str) -> str:
    """Return what an unknown code is not, as the end of an error: ``a rule; did you mean throttle-time``."""
    return "a rule" + (did_you_mean(word, [each.code for each in RULES]) or " (kdissect check --rules lists them)")

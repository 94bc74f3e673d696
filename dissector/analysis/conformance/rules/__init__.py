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

RULES: Final[tuple[ProtocolRule, ...]] = (
    *frames.RULES, *answers.RULES, *logins.RULES, *produce.RULES, *fetch.RULES, *records.RULES, *groups.RULES,
    *member_epochs.RULES, *cluster.RULES, *retries.RULES, *forwarding.RULES,
)  # fmt: skip

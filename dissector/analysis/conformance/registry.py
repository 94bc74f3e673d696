"""All rules. A new one is a class in a module of `rules`, and an entry of its `RULES`."""

from typing import Final

from dissector.analysis.conformance.rule import ProtocolRule
from dissector.analysis.conformance.rules import cluster, fetch, frames, groups, logins, produce

RULES: Final[tuple[type[ProtocolRule], ...]] = (
    *frames.RULES, *logins.RULES, *produce.RULES, *fetch.RULES, *groups.RULES, *cluster.RULES,
)  # fmt: skip

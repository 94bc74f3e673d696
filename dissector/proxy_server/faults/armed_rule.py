"""A rule in use: what it was asked, how often it matched and fired."""

from dataclasses import dataclass, field
from functools import cached_property

from dissector.capture.fault_counts import FaultCount
from dissector.exchange.model import Exchange
from dissector.filter.column_evaluation import NO, YES
from dissector.filter.early_evaluation import Known, evaluate_early, reads_topics, varies
from dissector.proxy_server.faults.rules import FaultRule
from dissector.proxy_server.faults.triggers import RunningTriggers


@dataclass
class ArmedRule:
    """A rule with its counts and the state of its triggers."""

    number: int
    """From 1, in the order in which rules are asked."""
    rule: FaultRule
    asked: int = 0
    matched: int = 0
    fired: int = 0
    unable: int = 0
    is_armed: bool = True
    """Whether it is asked at all."""
    triggers: RunningTriggers = field(init=False)

    def __post_init__(self) -> None:
        self.triggers = RunningTriggers(self.rule.triggers)

    @property
    def name(self) -> str:
        return self.rule.name or str(self.number)

    @property
    def count(self) -> FaultCount:
        counts = self.asked, self.matched, self.fired, self.unable
        return FaultCount(self.name, str(self.rule), *counts, self.is_armed)

    def arm(self, *, is_armed: bool) -> None:
        """Ask it from now on, or no longer. Its triggers count from 0 where it is armed again."""
        if is_armed and not self.is_armed:
            self.triggers = RunningTriggers(self.rule.triggers)
        self.is_armed = is_armed

    def is_over(self, now_ns: int) -> bool:
        """Whether it will not fire."""
        return not self.is_armed or self.triggers.is_over(now_ns)

    def evaluate(self, exchange: Exchange, known: Known) -> int:
        """Return whether its filter matches: `NO`, `OPEN` or `YES`."""
        found = self.rule.filter
        return YES if found is None else evaluate_early(found.condition, exchange, known)

    def matches(self, exchange: Exchange) -> bool:
        """Return whether its filter matches what there is of an exchange, which is all that it will be asked about."""
        return self.evaluate(exchange, Known.BOTH) != NO

    @cached_property
    def varies(self) -> bool:
        """Whether the head may decide otherwise for requests of one client, API and version."""
        return self.rule.filter is not None and varies(self.rule.filter.condition)

    @cached_property
    def reads_topics(self) -> bool:
        """Whether it is about topics or partitions."""
        return self.rule.filter is not None and reads_topics(self.rule.filter.condition)

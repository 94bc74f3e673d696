"""What could not be read, or is not told, as counts: of a capture, or of the parts that one is read in put together.

Invariant: the lines about a capture that was read in parts are those about it read as a whole.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from dissector.core.batches import NEVER
from dissector.core.finding import Finding, Severity
from dissector.transport.next_header import ORDINARY
from dissector.transport.reassembly import OUT_OF_WINDOW


@dataclass
class CaptureTally:
    """Counts. Of a part `ignored` has what the fragments of IP datagrams came to, which all parts see alike."""

    told: list[Finding] = field(default_factory=list)
    """What is wrong with the files, and with merging them."""
    ignored: Counter[str] = field(default_factory=Counter)
    """Packets by reason."""
    forgotten: int = 0
    """Connections that were taken for new ones."""
    strangers: int = 0
    """Connections on Kafka's port that are not Kafka and have no row."""
    near_losses: int = 0
    """That are not kept, as there are too many."""
    findings: Counter[str] = field(default_factory=Counter)
    """Others that are not kept, by code."""

    @classmethod
    def together(cls, dealt: Iterable["CaptureTally"], parts: Iterable["CaptureTally"]) -> "CaptureTally":
        """Of a whole: what was counted as it was dealt out, and what its parts counted."""
        whole, alike = cls(), Counter[str]()
        for each in dealt:
            whole.told += each.told
            whole.ignored += each.ignored
        for each in parts:
            whole.told += each.told
            alike |= each.ignored
            whole.ignored[OUT_OF_WINDOW] += each.ignored[OUT_OF_WINDOW]
            whole.forgotten += each.forgotten
            whole.strangers += each.strangers
            whole.near_losses += each.near_losses
            whole.findings += each.findings
        del alike[OUT_OF_WINDOW]
        whole.ignored += alike
        return whole

    @property
    def problems(self) -> list[Finding]:
        """A line about each."""
        near_losses = Counter({"near-loss": self.near_losses})
        return [
            *self.told, *_left_out(self.ignored), *_forgotten(self.forgotten), *_strangers(self.strangers),
            *omitted_findings(near_losses), *omitted_findings(self.findings),
        ]  # fmt: skip


class PartitionTally(NamedTuple):
    """What a part tells of itself as a whole."""

    dealt: list[CaptureTally]
    """What was left out as its packets were dealt."""
    tally: CaptureTally
    waits_from: int = NEVER
    """The packet of the first request of which notes may come yet, where the part is carried on."""


def _left_out(ignored: Counter[str]) -> list[Finding]:
    """A line about packets that may have been Kafka's and were not read."""
    reasons = {reason: count for reason, count in ignored.items() if count and reason not in ORDINARY}
    if not reasons:
        return []
    words = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
    told = f"{sum(reasons.values()):,} packets were not looked into: {words}"
    return [Finding("packets-left-out", Severity.WARNING, told)]


def _forgotten(connections: int) -> list[Finding]:
    """A line about connections that were taken for new ones, as so many were open that they had been forgotten."""
    if not connections:
        return []
    words = f"{connections:,} connections were idle while too many others were open, and are two each in the list"
    return [Finding("connections-forgotten", Severity.WARNING, words)]


def _strangers(count: int) -> list[Finding]:
    """A line about connections on Kafka's port that are not Kafka, where there are too many for a row each."""
    if not count:
        return []
    words = f"{count:,} more connections on Kafka's port are not Kafka: they have no row"
    return [Finding("strangers", Severity.WARNING, words)]


def omitted_findings(counts: Counter[str]) -> list[Finding]:
    """A line about findings that are not kept, as there are too many of a code."""
    words = ", ".join(f"{code} {count:,}" for code, count in sorted(counts.items()) if count)
    return [Finding("findings-left-out", Severity.NOTE, f"more was found than is kept: {words}")] if words else []

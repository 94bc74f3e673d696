"""What was not read, as counts: of a capture, or of its partitions merged.

Invariant: the problems of a capture that was read in partitions are those of the capture read as a whole.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dissector.capture_session.tls_problems import TlsTally
from dissector.capture_session.unreachable import Unreachable
from dissector.core.arrays import Int64
from dissector.core.batches import NEVER
from dissector.core.finding import Finding, Severity
from dissector.core.text import counted
from dissector.transport.headers import ORDINARY
from dissector.transport.reassembly import OUT_OF_WINDOW

OTHER_CONNECTIONS: Final = "non-kafka-connections"
"""The code of the finding about connections without a row."""


@dataclass
class CaptureTally:
    """Counts. All partitions see all fragments of IP datagrams: what `ignored` says of these is the same in each."""

    file_problems: list[Finding] = field(default_factory=list)
    """What is wrong with the files, with merging them, and with key logs."""
    ignored: Counter[str] = field(default_factory=Counter)
    """Packets by reason."""
    resumed_connections: int = 0
    """Connections that are two each, as they were forgotten while they were idle."""
    other_connections: Counter[str] = field(default_factory=Counter)
    """Connections with data that are not Kafka and have no row, by protocol."""
    unreachable: Unreachable = field(default_factory=Unreachable)
    """Servers that clients did not reach."""
    omitted_near_losses: int = 0
    """Near losses that are not kept, as there are too many."""
    early_responses: int = 0
    """Responses that the capture has before their requests."""
    omitted_findings: Counter[str] = field(default_factory=Counter)
    """Other findings that are not kept, by code."""
    tls: TlsTally = field(default_factory=TlsTally)
    cut_frames: int = 0
    """Frames of which bytes were cut off from their packets."""
    snap_length: int = 0
    """The most bytes of a packet that the snap length cut; 0 where none is known."""

    @classmethod
    def merged(cls, shuffled: Iterable["CaptureTally"], partitions: Iterable["CaptureTally"]) -> "CaptureTally":
        """Merge what was counted while packets were shuffled, and what their partitions counted."""
        whole, fragments = cls(), Counter[str]()
        for each in shuffled:
            whole.file_problems += each.file_problems
            whole.ignored += each.ignored
        for each in partitions:
            whole.file_problems += each.file_problems
            whole.tls += each.tls
            fragments |= each.ignored
            whole.ignored[OUT_OF_WINDOW] += each.ignored[OUT_OF_WINDOW]
            whole.resumed_connections += each.resumed_connections
            whole.other_connections += each.other_connections
            whole.cut_frames += each.cut_frames
            whole.snap_length = max(whole.snap_length, each.snap_length)
            whole.unreachable += each.unreachable
            whole.omitted_near_losses += each.omitted_near_losses
            whole.early_responses += each.early_responses
            whole.omitted_findings += each.omitted_findings
        del fragments[OUT_OF_WINDOW]
        whole.ignored += fragments
        return whole

    @property
    def problems(self) -> list[Finding]:
        """A finding for each."""
        near_losses = Counter({"near-loss": self.omitted_near_losses})
        return [
            *self.file_problems, *self.tls.findings, *_ignored_packets(self.ignored),
            *_cut_frames(self.cut_frames, self.snap_length),
            *_resumed_connections(self.resumed_connections),
            *_other_connections(self.other_connections), *self.unreachable.findings,
            *_early_responses(self.early_responses),
            *omitted_findings(near_losses), *omitted_findings(self.omitted_findings),
        ]  # fmt: skip


class PartitionTally(NamedTuple):
    """The counts of a partition."""

    shuffled: list[CaptureTally]
    """Counted while its packets were shuffled."""
    tally: CaptureTally
    oldest_pending: int = NEVER
    """The packet of the oldest request that may still cause observations, where the partition goes on."""
    others: Int64 | None = None
    """Numbers of the first packets of its TCP connections that have no row, ascending; None where it goes on."""


def _ignored_packets(ignored: Counter[str]) -> list[Finding]:
    """A finding about packets that may have been Kafka's and were not read."""
    reasons = {reason: count for reason, count in ignored.items() if count and reason not in ORDINARY}
    if not reasons:
        return []
    if len(reasons) == 1:
        words = next(iter(reasons))
    else:
        words = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
    total = f"{counted(sum(reasons.values()), 'packet')} skipped: {words}"
    return [Finding("packets-skipped", Severity.WARNING, total)]


def _cut_frames(count: int, snap_length: int) -> list[Finding]:
    """A finding about frames that are there in part, as packets were cut."""
    if not (count and snap_length):
        return []
    return [
        Finding("frames-cut", Severity.WARNING, f"{counted(count, 'frame')} truncated by snap length {snap_length:,}")
    ]


def _resumed_connections(connections: int) -> list[Finding]:
    """A finding about connections that were taken for new ones, as they had been forgotten while many were open."""
    if not connections:
        return []
    words = f"{connections:,} connections were idle while too many others were open, and are shown as two each"
    return [Finding("connections-forgotten", Severity.WARNING, words)]


def _other_connections(counts: Counter[str]) -> list[Finding]:
    """A finding about connections that are not Kafka and have no row."""
    total = counts.total()
    if not total:
        return []
    words = f"{counted(total, 'connection')} not shown, as {'it is' if total == 1 else 'they are'} not Kafka"
    protocols = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()) if count)
    return [Finding(OTHER_CONNECTIONS, Severity.NOTE, f"{words}: {protocols}")]


def _early_responses(count: int) -> list[Finding]:
    """A finding about responses that the capture has before their requests."""
    if not count:
        return []
    words = (
        f"{counted(count, 'response')} before {'its request' if count == 1 else 'their requests'}: packets are out of "
        "order, or the clocks of merged captures differ; latencies are not to be trusted"
    )
    return [Finding("early-responses", Severity.WARNING, words)]


def omitted_findings(counts: Counter[str]) -> list[Finding]:
    """A finding about findings that are not kept, as there are too many of a code."""
    words = ", ".join(f"{code} {count:,}" for code, count in sorted(counts.items()) if count)
    return [Finding("findings-omitted", Severity.NOTE, f"too many findings; left out: {words}")] if words else []

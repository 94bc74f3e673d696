"""Base classes of detectors: each detector finds one kind of finding.

A `ConnectionDetector` examines the rows of each connection by itself. An `Aggregator` finds what only rows of many
connections show: it gets the observations of one scope (a client, a group, a producer) from an `Extractor`. The state
of both is bounded (`BoundedStates`). They report a cause once, at the row where the cause is recognized, and may update
that finding later: how often, for how long. A `MessageDetector`, which keeps no state, finds what one message shows by
itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property
from typing import ClassVar, Generic, TypeVar

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NEVER
from dissector.core.finding import Finding, Severity
from dissector.core.text import duration
from dissector.exchange.message_question import NumberTest
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.extractor import Examiner, Extractor, Scope
from dissector.findings.framework.open_findings import FindingSink, OpenFinding
from dissector.findings.framework.read_fields import ReadFields
from dissector.findings.framework.recurrence import BoundedStates, Burst, Episode

Observed = TypeVar("Observed")


class FindingDetector(ABC):
    """Finds one kind of finding, and reports it."""

    explanation: ClassVar[Explanation]
    quiet_ns: ClassVar[int] = NEVER
    """After so long without a recurrence, the next one is a new finding."""

    def __init__(self, sink: FindingSink) -> None:
        self._sink = sink

    @cached_property
    def _episodes(self) -> BoundedStates[Hashable, Episode]:
        return BoundedStates(Episode)  # of thousands of scopes, few have any

    def report(self, row: int, message: str, path: str = "", severity: Severity | None = None) -> OpenFinding:
        """Report a finding; `severity` if it is not that of the explanation."""
        return self._sink.report(self.explanation, row, message, path, severity)

    def report_repeated(self, key: Hashable, row: int, time_ns: int, message: str, path: str, what: str) -> None:
        """Report one finding for each `key`. Recurrences update its message: how many `what` within what time."""
        episode = self._episodes.of(key)
        if episode.finding is None or time_ns - episode.last_ns > self.quiet_ns:
            episode.finding, episode.message, episode.count = self.report(row, message, path), message, 1
            episode.first_ns = episode.last_ns = time_ns
            return
        episode.count += 1
        episode.last_ns = max(episode.last_ns, time_ns)
        elapsed = duration(episode.last_ns - episode.first_ns)
        episode.finding.update(f"{episode.message}; {episode.count:,} {what} within {elapsed}")

    def report_burst(self, burst: Burst, row: int, time_ns: int, message: str, path: str, more: str = "") -> None:
        """Report an ongoing burst, or update its finding; its duration is added to the message, and `more`."""
        words = f"{message} within {burst.took(time_ns)}{more}"
        if burst.is_new or burst.finding is None:
            burst.finding = self.report(row, words, path)
        else:
            burst.finding.update(words)


class ConnectionDetector(FindingDetector, Examiner):
    """Examines connections one by one: override `examine_rows`, or `apis` and `examine_exchange`."""

    def __init__(self, sink: FindingSink, context: FindingContext) -> None:
        super().__init__(sink)
        self.context = context

    @property
    def revisable_rows(self) -> Int64:
        """Examined rows about which it may still report something."""
        return np.zeros(0, np.int64)

    @property
    def rechecked_frames(self) -> Int64:
        """Frames of examined rows whose `FindingContext.delays` it will query again."""
        return np.zeros(0, np.int64)


class Aggregator(FindingDetector, Generic[Observed]):
    """Folds the observations of one scope, in the order of the capture, into findings. It sees nothing else."""

    extractor: ClassVar[type[Extractor]]

    def __init__(self, sink: FindingSink, scope: Scope) -> None:
        super().__init__(sink)
        self.scope = scope

    @abstractmethod
    def add(self, row: int, observed: Observed) -> None:
        """Take the next observation, which is about `row`."""


class MessageDetector(ABC):
    """Finds one kind of finding, in exchanges with a request. It keeps no state.

        class OddSessionEpoch(MessageDetector):
            explanation: ClassVar = Explanation(...)
            apis: ClassVar = frozenset((ApiKey.FETCH,))
            reads: ClassVar = {"request.session_epoch": lambda epochs: epochs % 2 == 1}

            def find(self, fields: ReadFields) -> Iterator[Finding]:
                for path, epoch in fields.places("request.session_epoch"):
                    if isinstance(epoch, int) and epoch % 2:
                        yield self.finding(f"session epoch {epoch} is odd", path)

    `read_fields` says how fields are named. A field may have a test, of numbers only: it gets an array of many values
    of the field, of many messages, and says which of them are suspect. An exchange none of whose values pass a test has
    no finding, and is not decoded (`message_examination`). Without a test all exchanges are looked at, of those that
    are equal in all fields one: that costs little for a field with few different values, as `request.acks`.
    """

    explanation: ClassVar[Explanation]
    apis: ClassVar[frozenset[int]] = frozenset()
    """The APIs whose exchanges it looks at; empty for all."""
    reads: ClassVar[Mapping[str, NumberTest | None]]
    """The names of the fields that it reads, with their tests."""

    @abstractmethod
    def find(self, fields: ReadFields) -> Iterator[Finding]:
        """Yield the findings of an exchange. It may be one that no test found suspect."""

    def finding(self, message: str, path: str = "", severity: Severity | None = None) -> Finding:
        """Return a finding; `severity` if it is not that of the explanation."""
        return Finding(self.explanation.code, severity or self.explanation.severity, message, path)

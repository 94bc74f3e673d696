"""Findings of a capture's rows: those of each message alone, and those that only several messages show."""

import threading
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dissector.capture_session.row_space import RowSpace
from dissector.capture_session.stage_pipeline import Progress, StagePipeline
from dissector.core.arrays import Bool, Int64
from dissector.core.finding import Finding
from dissector.exchange.decoder import ExchangeDecoder
from dissector.findings.summary import NO_FINDINGS, UNKNOWN, FindingSummary

if TYPE_CHECKING:  # imported on use: columns of the index need no findings
    from dissector.findings.framework.aggregation import Observation
    from dissector.findings.framework.examination import Examination
    from dissector.findings.message_column import MessageFindingColumn

SummaryNumbers = tuple[Int64, Sequence[FindingSummary]]
"""A number for each row, `(n,)`, and the summary of its findings that each number stands for."""


class FindingsPass:
    """Goes over the rows step by step, as far as they are complete.

    `lock` guards the numbers of rows, as in `Capture`. Several threads may examine: they take turns, step by step.
    """

    def __init__(
        self, pipeline: StagePipeline, rows: RowSpace, decoder: ExchangeDecoder, most_pending: int,
        lock: threading.Lock, examination: "Examination | None",
    ) -> None:  # fmt: skip
        self._pipeline = pipeline
        self._rows = rows
        self._decoder = decoder
        self._most_pending = most_pending
        self._lock = lock
        self._step = threading.Lock()
        """Held by whoever does a step of the examination."""
        self.examination = examination
        """Of cross-message findings; None before it begins."""
        self._of_messages: MessageFindingColumn | None = None
        self.steps = 0
        """Grows with each step of the examination."""

    def restart(self) -> None:
        """Forget everything, as rows have changed their numbers."""
        self.examination = self._of_messages = None

    def examine(self, *, part: bool = False, step: int | None = None) -> Iterator[Progress]:
        """Find what only several messages show, in complete rows that were not examined yet; all rows once reading is
        finished. `done` and `total` are rows here. Steps have `step` rows, or as many as nobody waits for.

        Of a `part` of a larger capture, findings that involve several connections become observations, as not all of
        these connections are there: see `take_observations`."""
        from dissector.findings.framework.examination import STEP

        examination, final = self._begun(part=part), self._pipeline.is_finished
        steps = examination.examine(self._most_pending, final=final, step=step or STEP)
        yield from self._run(examination, steps, final=final)

    def limit_to(self, rows: Int64, codes: Collection[str] | None = None) -> None:
        """Examine only what the findings of these rows need; before the first step, when reading is finished. With
        `codes` only these cross-message findings are found, and only where these rows' connections have them."""
        self._begun(part=False).limit_to(self._rows.index_rows(rows), codes)

    def examine_in_order(self, now_ns: int) -> Iterator[Progress]:
        """Examine a part in the order in which rows begin, so that the findings do not depend on where its pieces end.
        `now_ns` is the time that the capture as a whole has reached."""
        examination = self._begun(part=True)
        final = self._pipeline.is_finished
        steps = examination.examine_in_order(self._most_pending, now_ns, final=final)
        yield from self._run(examination, steps, final=final)

    def take_observations(self) -> "list[Observation]":
        """Observations since the last call, for `dissector.findings.framework.aggregation`."""
        return [] if self.examination is None else self.examination.observations.take()

    def examine_messages(self, rows: Int64) -> Iterator[int]:
        """Find the message findings of rows in short steps, and how far that is. They are kept, so that filters on
        findings, severities and errors need no decoding. Rows that may change are left out."""
        from dissector.findings.message_column import MessageFindingColumn

        with self._lock:
            kept = self._of_messages
            if kept is None or not kept.is_of_this_process:
                kept = MessageFindingColumn(self._pipeline.indexer, self._pipeline.store, self._decoder)
                self._of_messages = kept
        yield from kept.fill(self._rows.index_rows(rows), final=self._pipeline.is_finished)

    def message_summaries(self, index_rows: Int64) -> SummaryNumbers:
        """Summaries of message findings, of rows of the index; number 0 where they are not known."""
        kept = self._of_messages
        return (
            (np.zeros(len(index_rows), np.int64), (UNKNOWN,)) if kept is None else (kept.of(index_rows), kept.summaries)
        )

    def cross_message_summaries(self, index_rows: Int64) -> SummaryNumbers:
        """The same of cross-message findings found so far; number 0 where there are none."""
        examination = self.examination
        if examination is None:
            return np.zeros(len(index_rows), np.int64), (NO_FINDINGS,)
        return examination.findings.numbers(index_rows), examination.findings.summaries

    def may_have_message_findings(self, rows: Int64) -> Bool:
        """Which rows have message findings, or may have some, as far as `examine_messages` went, `(n,)`."""
        may_have = np.ones(len(rows), np.bool_)
        numbers, summaries = self.message_summaries(self._rows.index_rows(rows))
        may_have[~self._rows.is_entry(rows)] = np.array([bool(each.codes) for each in summaries])[numbers]
        return may_have

    def cross_message(self) -> list[tuple[int, Finding]]:
        """All cross-message findings so far, with their rows, by row."""
        if self.examination is None:
            return []
        with self._step:
            return [(self._rows.entries + row, finding) for row, finding in self.examination.findings.all()]

    def of_index_row(self, index_row: int) -> list[Finding]:
        """The cross-message findings of a row of the index, as far as they are found."""
        return [] if self.examination is None else self.examination.findings.of(index_row)

    def _begun(self, *, part: bool) -> "Examination":
        with self._step:  # threads that begin at once share one
            if self.examination is None:
                from dissector.findings.framework.examination import Examination

                pipeline = self._pipeline
                self.examination = Examination(
                    pipeline.indexer, pipeline.store, self._decoder, pipeline.transport.connections,
                    pipeline.transport.retransmissions, pipeline.transport.deliveries, pipeline.tls.plaintext,
                    part=part,
                )  # fmt: skip
            return self.examination

    def _run(self, examination: "Examination", steps: Iterator[int], *, final: bool) -> Iterator[Progress]:
        with self._lock:
            self._decoder.update_conversation_state()
        while True:
            with self._step:
                examined = next(steps, None)
            if examined is None:
                break
            self.steps += 1
            count = len(self._rows)
            yield Progress(self._rows.entries + examined, count, self._pipeline.packets, count)
        if final:
            with self._step:
                self._pipeline.count_omitted_findings(examination.findings.take_omitted())
                examination.end()

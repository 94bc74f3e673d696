"""A capture examined: what only several rows together tell."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from dissector.capture_session.decoding import Decoding
from dissector.capture_session.reading import Progress
from dissector.capture_session.tally import omitted_findings
from dissector.core.arrays import Bool, Int64
from dissector.core.finding import Finding
from dissector.exchange.model import Exchange
from dissector.findings.examination import Examination
from dissector.findings.notes import Noted
from dissector.findings.own import UNKNOWN, OwnFindings
from dissector.findings.told import NOTHING, Told


class Examining(Decoding):
    """Step by step, as far as rows are there."""

    _told: OwnFindings | None = None

    def _finish(self, *, settled: bool) -> None:
        super()._finish(settled=settled)
        if settled:
            self._examination = self._told = None  # rows have changed their places

    def examine(self, *, part: bool = False) -> Iterator[Progress]:
        """Find what only several rows together tell; `done` and `total` are rows here. From then on exchanges have it
        in their findings. Called again where a capture grows, it goes on where it stopped, with rows that are complete;
        once reading is over it takes them all. Several threads may do so at a time: they take turns, step by step.

        Of a part of a larger capture, what takes several connections to tell is noted, as not all of them are there:
        see `take_notes`."""
        yield from self._examine(self._examined(part=part).go_on(self.bounds.pending_requests, final=self._finished))

    def _examined(self, *, part: bool) -> Examination:
        if self._examination is None:
            self._examination = Examination(
                self._session, self._store, self._lookup, self._transport.flows, self._transport.resent, part=part
            )
        return self._examination

    def _examine(self, steps: Iterator[int]) -> Iterator[Progress]:
        entries = len(self._files)
        with self._lock:
            self._lookup.learn()
        while True:
            with self._examining:
                rows = next(steps, None)
            if rows is None:
                break
            self._look.cache_clear()
            yield Progress(entries + rows, len(self), self.packets, len(self))
        if self._finished and self._examination is not None:
            left_out = Counter(self._examination.found.take_left_out())
            self.tally.findings += left_out
            self.problems += omitted_findings(left_out)

    def take_notes(self) -> list[Noted]:
        """What was noted since the last time, for `analysis.findings.notes.made`: each is taken once."""
        return [] if self._examination is None else self._examination.notes.taken()

    def tell(self, rows: Int64) -> Iterator[int]:
        """Find out in short steps what these rows, from 0, tell by themselves; how far that is. It is kept, so that
        filters on findings, severities and errors are answered without decoding. Rows that may change are left out."""
        entries = len(self._files)
        with self._lock:
            own = self._told
            if own is None or not own.is_of_this_process:
                own = self._told = OwnFindings(self._session, self._store, self._lookup, _errors)
        yield from own.tell(rows[rows >= entries] - entries, final=self._finished)

    def own(self, rows: Int64) -> tuple[Int64, Sequence[Told]]:
        """What rows of the index tell by themselves, as numbers, `(n,)`, and what these stand for; 0 for not known."""
        own = self._told
        return (np.zeros(len(rows), np.int64), (UNKNOWN,)) if own is None else (own.of(rows), own.told)

    def several(self, rows: Int64) -> tuple[Int64, Sequence[Told]]:
        """The same of what several rows together tell, as far as that was examined; 0 for nothing."""
        examination = self._examination
        if examination is None:
            return np.zeros(len(rows), np.int64), (NOTHING,)
        return examination.found.numbers(rows), examination.found.told

    def speaks(self, rows: Int64) -> Bool:
        """Which of these rows, from 0, have a finding of their own, or may have one, as far as `tell` knows, `(n,)`."""
        entries = len(self._files)
        speaks = np.ones(len(rows), np.bool_)
        numbers, values = self.own(rows[rows >= entries] - entries)
        speaks[rows >= entries] = np.array([bool(told.codes) for told in values])[numbers]
        return speaks

    def troubles(self) -> list[tuple[int, Finding]]:
        """All that `examine` has found so far, with rows from 0, by row."""
        if self._examination is None:
            return []
        entries = len(self._files)
        with self._examining:
            return [(entries + row, finding) for row, finding in self._examination.found.all()]

    def _mark(self, exchange: Exchange, row: int) -> Exchange:
        """Add what was found about a row of the index."""
        found = self._examination.found.of(row) if self._examination is not None else []
        if found:
            exchange.mark(found)
        return exchange


def _errors(exchange: Exchange) -> Iterator[object]:
    """The errors of an exchange, as filters have them."""
    from dissector.exchange.message_subjects import ERROR

    return ERROR.of(exchange)

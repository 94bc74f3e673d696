"""Infers the layout of a response whose request is missing: candidates, the most likely first, and the confidence.

By Bayes' theorem: the prior of a layout (`evidence`), and the likelihood of the bytes under it (`scoring`), in bits.
"""

import math
from collections.abc import Iterator, Set
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from typing import Final, NamedTuple

from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.reader import DECODE_ERRORS, reader
from dissector.protocol.inference.evidence import InferenceEvidence, Odds
from dissector.protocol.inference.layouts import (
    Beginning,
    LayoutFits,
    ResponseLayout,
    layout_program,
    layouts,
    least_bits,
)
from dissector.protocol.inference.scoring import InconclusiveError, LayoutMismatchError, Scorer

BEGIN: Final = 4
"""Offset of the header in a frame."""
MARGIN: Final = 20.0
"""Bits that a layout may cost more than the best so far; above, its share is less than a millionth."""
CHANCE: Final = 8.0
"""Bits per byte of random bytes. A frame that costs more under every layout fits them by chance."""
LEAST_SHARE: Final = 0.005
CLEAR: Final = 6.0
"""Bits by which the best layout must beat those of other APIs for the bytes to distinguish them."""
POSSIBLE: Final = 1e-5
"""The share from which another API counts as a rival."""


LONGEST_READ: Final = 1 << 16
"""Bytes of the largest frame that is read natively along every layout: each may take a nanosecond a byte."""


class Confidence(StrEnum):
    """The confidence in an inference."""

    SURE = "sure"
    LIKELY = "likely"
    GUESS = "a guess"
    NONE = "undecided"
    """More than one API fits about equally well, or none does."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layout that fits. `share` is its probability."""

    layout: ResponseLayout
    version: int
    """The most likely of the layout's versions."""
    share: float


@dataclass(frozen=True)
class InferenceVerdict:
    """Candidates for the layout of a response, the most likely first; empty if nothing fits."""

    candidates: tuple[Candidate, ...]
    is_distinct: bool = False
    """Whether the bytes distinguish the first candidate's API from others; else only its prior does."""

    @cached_property
    def share(self) -> float:
        """The probability of the first candidate's API, over all its layouts."""
        first = self.candidates[0].layout.api.key if self.candidates else None
        return sum(each.share for each in self.candidates if each.layout.api.key == first)

    @cached_property
    def confidence(self) -> Confidence:
        share = self.share
        if share >= 0.98 and self.is_distinct:
            return Confidence.SURE
        return Confidence.LIKELY if share >= 0.85 else Confidence.GUESS if share >= 0.4 else Confidence.NONE


UNDECIDED: Final = InferenceVerdict(())


class _ScoredLayout(NamedTuple):
    """A layout that fits: its total bits, and those of the bytes alone (`fit`)."""

    layout: ResponseLayout
    bits: float
    fit: float


class ScoredResponse:
    """A response frame of `size` bytes on the wire, of which the first `whole` were captured: how well it fits layouts,
    whatever else is known of its connection. `words` occur elsewhere in the capture.

    Remembers what it was asked: a response is inferred once to be evidence, and again with all evidence."""

    def __init__(self, data: bytes, whole: int, size: int, words: Set[str]) -> None:
        self.size = size
        self._data = data[:whole]
        self._words = words
        self._headers = [_header(self._data, size, version) for version in (0, 1)]
        self._fitting = _layout_fits().of(self._data).tolist() if whole == size <= LONGEST_READ else None
        """By a layout's number, whether the bytes may fit it to the last one; None where that is not known."""
        self._begins: dict[tuple[int, Beginning], float] = {}
        self._scores: dict[ResponseLayout, _Score] = {}

    def fit(self, layout: ResponseLayout, most: float) -> float | None:
        """Return the bits of the bytes under a layout; None if they don't fit it, or cost more than `most`."""
        header = self._headers[layout.header_version]
        if header is None or header.at + layout.least > self.size:
            return None
        begin = layout.beginning
        key = (layout.header_version, begin)
        least = self._begins.get(key)
        if least is None:
            least = self._begins[key] = least_bits(begin, self._data, header.at)
        if header.bits + least > most:
            return None
        if self._fitting is not None and not self._fitting[layout.number]:
            return None
        known = self._scores.get(layout)
        if known is None or (known.fit is None and known.most < most):
            known = self._scores[layout] = self._score(layout, header, most)
        return known.fit if known.paid <= most else None

    def _score(self, layout: ResponseLayout, header: Scorer, most: float) -> "_Score":
        data, size = self._data, self.size
        scorer = Scorer(data, header.at, size, most - header.bits, self._words)
        try:
            scorer.message(layout.plan)
        except LayoutMismatchError:
            return _Score(most)
        except InconclusiveError:
            if len(data) == size and not _reads(data, header.at, layout):
                return _NO_FIT
        else:
            if scorer.at != size:
                return _NO_FIT
        fit = header.bits + scorer.bits * (size - header.at) / max(1, scorer.at - header.at)
        return _Score(most, header.bits + scorer.bits, fit)


class _Score(NamedTuple):
    """What scoring a layout gave."""

    most: float
    """The limit of bits that was set."""
    paid: float = 0.0
    """The bits that were paid for the fields that were scored, ..."""
    fit: float | None = None
    """... and for all; None if the bytes don't fit, or it would have been more than the limit."""


_NO_FIT: Final = _Score(math.inf)


def infer_response(data: bytes, whole: int, size: int, evidence: InferenceEvidence) -> InferenceVerdict:
    """Infer the layout of a response frame of `size` bytes on the wire, of which the first `whole` were captured."""
    return infer(ScoredResponse(data, whole, size, evidence.words), evidence)


def infer(response: ScoredResponse, evidence: InferenceEvidence, odds: Odds | None = None) -> InferenceVerdict:
    """Infer the layout of a response. `odds` are the layouts to try, with their priors; all by default."""
    chance = CHANCE * (response.size - BEGIN)
    odds = evidence.odds if odds is None else odds
    weighed = sorted(_scored_layouts(response, odds, chance), key=lambda each: each.bits)
    if not weighed:
        return UNDECIDED
    best = weighed[0]
    least = min(best.bits, chance)  # counted from the least, no power is above 1
    total = sum(2.0 ** (least - each.bits) for each in weighed) + 2.0 ** (least - chance)
    shares = [(2.0 ** (least - each.bits) / total, each) for each in weighed]
    rivals = [each for share, each in shares if share >= POSSIBLE and each.layout.api is not best.layout.api]
    return InferenceVerdict(
        tuple(
            Candidate(each.layout, evidence.newest(each.layout), share)
            for share, each in shares
            if share >= LEAST_SHARE
        ),
        is_distinct=all(each.fit > best.fit + CLEAR for each in rivals),
    )


def _scored_layouts(response: ScoredResponse, odds: Odds, best: float) -> Iterator[_ScoredLayout]:
    """Yield the layouts that fit, except those far behind the best one; `best` is the initial limit in bits."""
    for named, layout in odds:
        fit = response.fit(layout, best + MARGIN - named)
        if fit is not None:
            best = min(best, named + fit)
            yield _ScoredLayout(layout, named + fit, fit)


def _header(data: bytes, size: int, version: int) -> Scorer | None:
    """Return the scorer behind the header; None if the bytes can't be one."""
    scorer = Scorer(data, BEGIN, size, math.inf, frozenset())
    try:
        scorer.message(plan("ResponseHeader", version))
    except (LayoutMismatchError, InconclusiveError):
        return None
    return scorer


@cache
def _layout_fits() -> LayoutFits:
    """Return what finds the layouts that a frame fits."""
    return LayoutFits([layout_program(each) for each in layouts()], BEGIN)


def _reads(data: bytes, at: int, layout: ResponseLayout) -> bool:
    """Return whether a layout whose body begins at `at` ends where the frame ends."""
    try:
        return reader(layout.api.response, layout.versions[-1], layout.other)(data, at, len(data))[1] == len(data)
    except DECODE_ERRORS:
        return False

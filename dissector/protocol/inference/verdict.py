"""Infers the layout of a response whose request is missing: candidates, the most likely first, and the confidence.

By Bayes' theorem: the prior of a layout (`evidence`), and the likelihood of the bytes under it (`scoring`), in bits.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.reader import DECODE_ERRORS, reader
from dissector.protocol.inference.beginnings import Beginning, least_bits
from dissector.protocol.inference.evidence import InferenceEvidence, Odds
from dissector.protocol.inference.layouts import ResponseLayout
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


@dataclass(frozen=True, slots=True)
class InferenceVerdict:
    """Candidates for the layout of a response, the most likely first; empty if nothing fits."""

    candidates: tuple[Candidate, ...]
    is_distinct: bool = False
    """Whether the bytes distinguish the first candidate's API from others; else only its prior does."""

    @property
    def share(self) -> float:
        """The probability of the first candidate's API, over all its layouts."""
        first = self.candidates[0].layout.api.key if self.candidates else None
        return sum(each.share for each in self.candidates if each.layout.api.key == first)

    @property
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


def infer_response(
    data: bytes, whole: int, size: int, evidence: InferenceEvidence, odds: Odds | None = None
) -> InferenceVerdict:
    """Infer the layout of a response frame of `size` bytes on the wire, of which the first `whole` were captured.

    `odds` are the layouts to try, with their priors; all by default."""
    chance = CHANCE * (size - BEGIN)
    odds = evidence.odds if odds is None else odds
    weighed = sorted(_scored_layouts(data[:whole], size, evidence, odds, chance), key=lambda each: each.bits)
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


def _scored_layouts(
    data: bytes, size: int, evidence: InferenceEvidence, odds: Odds, best: float
) -> Iterator[_ScoredLayout]:
    """Yield the layouts that fit, except those far behind the best one; `best` is the initial limit in bits."""
    headers = [_header(data, size, version) for version in (0, 1)]
    begins: dict[tuple[int, Beginning], float] = {}
    for named, layout in odds:
        header = headers[layout.header_version]
        if header is None or header.at + layout.least > size:
            continue
        begin = layout.beginning
        key = (layout.header_version, begin)
        least = begins.get(key)
        if least is None:
            least = begins[key] = least_bits(begin, data, header.at)
        if named + header.bits + least > best + MARGIN:
            continue
        scorer = Scorer(data, header.at, size, best + MARGIN - named - header.bits, evidence.words)
        try:
            scorer.message(layout.plan)
        except LayoutMismatchError:
            continue
        except InconclusiveError:
            if len(data) == size and not _reads(data, header.at, layout):
                continue
        else:
            if scorer.at != size:
                continue
        fit = header.bits + scorer.bits * (size - header.at) / max(1, scorer.at - header.at)
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


def _reads(data: bytes, at: int, layout: ResponseLayout) -> bool:
    """Return whether a layout whose body begins at `at` ends where the frame ends."""
    try:
        return reader(layout.api.response, layout.versions[-1], layout.other)(data, at, len(data))[1] == len(data)
    except DECODE_ERRORS:
        return False

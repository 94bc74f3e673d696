"""A response without its request: the layouts that it may have, the most plausible first, and how sure that is.

By Bayes: what a layout costs to name (`evidence`) and what the bytes cost under it (`weigh`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.reader import DECODE_ERRORS, reader
from dissector.protocol.inference.evidence import InferenceEvidence
from dissector.protocol.inference.layouts import ResponseLayout
from dissector.protocol.inference.scoring import InconclusiveError, LayoutMismatchError, Scorer

BEGIN: Final = 4
"""Where the header stands in a frame."""
MARGIN: Final = 20.0
"""Bits that a layout may cost more than the best so far: beyond them it has less than a millionth."""
CHANCE: Final = 8.0
"""Bits a byte that a frame costs as mere bytes: what costs more under every layout fits them by chance."""
LEAST_SHARE: Final = 0.005
CLEAR: Final = 6.0
"""Bits that the best layout must be ahead of those of other APIs for the bytes to tell them apart."""
POSSIBLE: Final = 1e-5
"""The share from which another API counts in that."""


class Confidence(StrEnum):
    """How sure it is, in words."""

    SURE = "sure"
    LIKELY = "likely"
    GUESS = "a guess"
    NONE = "undecided"
    """Several fit as well as each other, or none does."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layout that fits. `share` is how likely it is, of 1."""

    layout: ResponseLayout
    version: int
    """The one of its versions that it is named by."""
    share: float


@dataclass(frozen=True, slots=True)
class InferenceVerdict:
    """What a response may be, the most likely first; empty where nothing fits."""

    candidates: tuple[Candidate, ...]
    is_distinct: bool = False
    """Whether the bytes themselves tell the first one's API from others; else it is only the likelier one."""

    @property
    def share(self) -> float:
        """How likely the first one's API is: its other layouts say the same with other words."""
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
    """A layout that fits: its bits, and those of them that the bytes cost."""

    layout: ResponseLayout
    bits: float
    fit: float


def infer_response(data: bytes, whole: int, size: int, evidence: InferenceEvidence) -> InferenceVerdict:
    """What a response frame may be; `data` is captured up to `whole`, the frame has `size` bytes on the wire."""
    chance = CHANCE * (size - BEGIN)
    weighed = sorted(_scored_layouts(data[:whole], size, evidence, chance), key=lambda each: each.bits)
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


def _scored_layouts(data: bytes, size: int, evidence: InferenceEvidence, best: float) -> Iterator[_ScoredLayout]:
    """Layouts that fit, with their bits; those far behind the best, or what `best` is to begin with, left out."""
    headers = [_header(data, size, version) for version in (0, 1)]
    for named, layout in evidence.odds:
        header = headers[layout.header_version]
        if header is None or header.at + layout.least > size:
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
    """The header, weighed; None where it can't be one."""
    scorer = Scorer(data, BEGIN, size, math.inf, frozenset())
    try:
        scorer.message(plan("ResponseHeader", version))
    except (LayoutMismatchError, InconclusiveError):
        return None
    return scorer


def _reads(data: bytes, at: int, layout: ResponseLayout) -> bool:
    """Whether a layout whose body begins at `at` ends where the frame ends."""
    try:
        return reader(layout.api.response, layout.versions[-1], layout.other)(data, at, len(data))[1] == len(data)
    except DECODE_ERRORS:
        return False

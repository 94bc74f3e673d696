"""A response without its request: the layouts that it may have, the most plausible first, and how sure that is.

By Bayes: what a layout costs to name (`evidence`) and what the bytes cost under it (`weigh`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.reader import DAMAGE, reader
from dissector.protocol.inference.evidence import Evidence
from dissector.protocol.inference.layouts import Layout
from dissector.protocol.inference.weigh import MisfitError, StopError, Weigher

BEGIN: Final = 4
"""Where the header stands in a frame."""
MARGIN: Final = 20.0
"""Bits that a layout may cost more than the best so far: beyond them it has less than a millionth."""
CHANCE: Final = 8.0
"""Bits a byte that a frame costs as mere bytes: what costs more under every layout fits them by chance."""
LEAST_SHARE: Final = 0.005


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

    layout: Layout
    version: int
    """The one of its versions that it is named by."""
    share: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a response may be, the most likely first; empty where nothing fits."""

    candidates: tuple[Candidate, ...]

    @property
    def share(self) -> float:
        """How likely the first one's API is: its other layouts say the same with other words."""
        first = self.candidates[0].layout.api.key if self.candidates else None
        return sum(each.share for each in self.candidates if each.layout.api.key == first)

    @property
    def confidence(self) -> Confidence:
        share = self.share
        bounds = ((0.98, Confidence.SURE), (0.8, Confidence.LIKELY), (0.4, Confidence.GUESS))
        return next((word for least, word in bounds if share >= least), Confidence.NONE)


UNDECIDED: Final = Verdict(())


def judge(data: bytes, whole: int, size: int, evidence: Evidence) -> Verdict:
    """What a response frame may be; `data` is captured up to `whole`, the frame has `size` bytes on the wire."""
    chance = CHANCE * (size - BEGIN)
    weighed = sorted(_weighed(data[:whole], size, evidence, chance), key=lambda pair: pair[0])
    if not weighed:
        return UNDECIDED
    best = weighed[0][0]
    weights = [(2.0 ** (best - bits), layout) for bits, layout in weighed]
    total = sum(weight for weight, _ in weights) + 2.0 ** (best - chance)
    found = [
        Candidate(layout, evidence.newest(layout), weight / total)
        for weight, layout in weights
        if weight / total >= LEAST_SHARE
    ]
    return Verdict(tuple(found))


def _weighed(data: bytes, size: int, evidence: Evidence, best: float) -> Iterator[tuple[float, Layout]]:
    """Layouts that fit, with their bits; those far behind the best, or what `best` is to begin with, left out."""
    headers = [plan("ResponseHeader", version) for version in (0, 1)]
    for named, layout in evidence.odds:
        weigher = Weigher(data, BEGIN, size, best + MARGIN - named, evidence.words)
        try:
            weigher.message(headers[layout.header_version])
            weigher.message(layout.plan)
        except MisfitError:
            continue
        except StopError:
            if len(data) == size and not _reads(data, layout):
                continue
        else:
            if weigher.at != size:
                continue
        bits = named + weigher.bits * (size - BEGIN) / max(1, weigher.at - BEGIN)
        best = min(best, bits)
        yield bits, layout


def _reads(data: bytes, layout: Layout) -> bool:
    """Whether a layout ends where the frame ends."""
    try:
        _, at = reader("ResponseHeader", layout.header_version)(data, BEGIN, len(data))
        return reader(layout.api.response, layout.versions[-1], layout.other)(data, at, len(data))[1] == len(data)
    except DAMAGE:
        return False

"""A verdict in words: what an inferred response is shown as, how certain that is, what else it may be."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from dissector.core.finding import Finding, Severity
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.embedded.secrets import may_hold_secrets
from dissector.protocol.inference.verdict import Candidate, Confidence, InferenceVerdict
from dissector.protocol.masking import mask_secrets
from dissector.protocol.message_layout import UNKNOWN_MESSAGE, UNKNOWN_RESPONSE, MessageLayout

SURE_OF_VERSION: Final = 0.9
MAX_NAMED: Final = 4
"""Candidates that are named."""


class OrphanFrame(NamedTuple):
    """The response: its captured bytes, how many were on the wire, how many are there before a gap."""

    data: bytes
    size: int
    whole: int
    context: DecodingContext


def layout_of_candidate(candidate: Candidate) -> MessageLayout:
    """Return the layout of a response that is what the candidate says."""
    layout = candidate.layout
    return MessageLayout("ResponseHeader", layout.header_version, layout.api.response, candidate.version)


def claimed(verdict: InferenceVerdict) -> Candidate | None:
    """Return the candidate that the response is shown as; None where too many fit."""
    return None if verdict.confidence is Confidence.NONE else verdict.candidates[0]


def certainty(verdict: InferenceVerdict) -> str:
    """Return how certain the verdict is; of the API alone, where other layouts of it fit too."""
    if verdict.confidence is Confidence.SURE and verdict.candidates[0].share < SURE_OF_VERSION:
        return "sure of the API"
    return str(verdict.confidence)


def layout_of_verdict(verdict: InferenceVerdict, frame: OrphanFrame) -> MessageLayout:
    """Return the layout to read the response with, labeled as inferred."""
    best = claimed(verdict)
    layout = UNKNOWN_RESPONSE if best is None else layout_of_candidate(best)
    is_doubtful = verdict.confidence is not Confidence.SURE and _may_be_secret(verdict, best, frame)
    is_cut = not frame.whole == frame.size == len(frame.data)
    is_secret = is_doubtful or frame.context.has_secrets or (is_cut and frame.context.may_have_secrets)
    unread = UNKNOWN_MESSAGE if is_secret else None
    return layout._replace(findings=tuple(findings(verdict)), unread=unread)


def _may_be_secret(verdict: InferenceVerdict, best: Candidate | None, frame: OrphanFrame) -> bool:
    """Whether a response fits nothing, or something with a secret besides what it is shown as."""
    others = [each for each in verdict.candidates if each is not best]
    return not verdict.candidates or any(_has_secret(layout_of_candidate(each), frame) for each in others)


def _has_secret(layout: MessageLayout, frame: OrphanFrame) -> bool:
    if not may_hold_secrets(layout.body, frame.data, frame.context):
        return False
    return mask_secrets(frame.data, frame.size, layout, frame.whole, frame.context).data is not frame.data


def findings(verdict: InferenceVerdict) -> list[Finding]:
    """Return the finding that labels an inferred response; none where no layout fits."""
    if not verdict.candidates:
        return []
    best, others = claimed(verdict), _shares(verdict.candidates)
    if best is None:
        words = f"too little to tell what it answers; it may be {others}"
        return [Finding("inferred", Severity.NOTE, words)]
    name = f"{best.layout.api.name} v{best.version}"
    words = f"read as {name} by inference: {certainty(verdict)}"
    same = [version for version in best.layout.versions if version != best.version]
    if same:
        words += f"; v{_ranges(same)} {'has' if len(same) == 1 else 'have'} the same layout"
    rest = _shares(verdict.candidates[1:])
    return [Finding("inferred", Severity.NOTE, f"{words}; else {rest}" if rest else words)]


def _shares(candidates: Sequence[Candidate]) -> str:
    """``Heartbeat v1-3 (69 %), EndTxn v0-2 (6 %)``."""
    named = [
        f"{each.layout.api.name} v{_ranges(each.layout.versions)} ({max(1, round(100 * each.share))} %)"
        for each in candidates[:MAX_NAMED]
    ]
    more = len(candidates) - MAX_NAMED
    return ", ".join([*named, f"{more} more"] if more > 0 else named)


def _ranges(versions: Sequence[int]) -> str:
    """``1-3, 5``."""
    runs: list[list[int]] = []
    for version in versions:
        if runs and runs[-1][1] == version - 1:
            runs[-1][1] = version
        else:
            runs.append([version, version])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)

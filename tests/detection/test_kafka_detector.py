"""How many responses are recognized without their requests, compared with the truth of the whole captures.

The figures are printed, and must not fall.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from dissector.index.exchange_table import NO_FRAME, RowKind
from dissector.protocol.inference.evidence import NOTHING
from dissector.protocol.inference.verdict import Confidence, InferenceVerdict, infer_response
from tests.index.inferred_rows import EVERY, FIRST_PORT, conversations, rewritten

pytestmark = pytest.mark.slow

Pair = tuple[int, int]
of_captures = pytest.mark.parametrize(
    "names", [EVERY[::4], pytest.param(EVERY, marks=pytest.mark.exhaustive)], ids=["every fourth", "all"]
)
"""The figures of every fourth capture differ from those of all by up to three percent; the floors hold for both."""


@dataclass
class Score:
    """Right and wrong verdicts, by API and by confidence."""

    judged: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    layouts: int = 0
    among_three: int = 0
    by_confidence: Counter[Confidence] = field(default_factory=Counter)
    right_by_confidence: Counter[Confidence] = field(default_factory=Counter)

    def enter(self, verdict: InferenceVerdict, name: str, truth: Pair) -> None:
        """One response judged. A layout is right where the true version is among those that share it."""
        found = [(each.layout.api.key, each.layout.versions) for each in verdict.candidates]
        fits = [key == truth[0] and truth[1] in versions for key, versions in found]
        right = bool(found) and found[0][0] == truth[0]
        self.judged[name] += 1
        self.right[name] += right
        self.layouts += fits[:1] == [True]
        self.among_three += any(fits[:3])
        self.by_confidence[verdict.confidence] += 1
        self.right_by_confidence[verdict.confidence] += right

    def share(self, count: int) -> float:
        return count / self.judged.total()

    def summary(self, title: str) -> str:
        """The figures in words, and the APIs that are taken for another one."""
        wrong = ", ".join(f"{name} {self.right[name]}/{n}" for name, n in self.judged.items() if self.right[name] < n)
        by_confidence = ", ".join(
            f"{word} {n} ({self.right_by_confidence[word] / n:.0%} right)" for word, n in self.by_confidence.items()
        )
        return (
            f"\n{title}: {self.judged.total()} responses: API {self.share(self.right.total()):.1%}, "
            f"layout too {self.share(self.layouts):.1%}, among the first three {self.share(self.among_three):.1%}"
            f"\n  {by_confidence}\n  not always right: {wrong}"
        )


def truth_of(exchange: Exchange) -> Pair:
    assert exchange.api_key is not None
    assert exchange.response is not None
    return exchange.api_key, exchange.response.layout.body_version


def lone_rows(capture: Capture) -> Iterator[tuple[int, int, bytes]]:
    """Responses without a request: number of the row, connection in the original capture, bytes."""
    table, frames = capture.pipeline.indexer.table, capture.pipeline.indexer.frames
    for number in range(len(capture)):
        if table.kind.values[number] == RowKind.EXCHANGE and table.request.values[number] == NO_FRAME:
            data, _ = frames.read(int(table.response.values[number]))
            (_, client), _ = capture.pipeline.transport.connections.endpoints(int(table.connection.values[number]))
            yield number, client - FIRST_PORT, data


def verdict_of(capture: Capture, number: int) -> InferenceVerdict:
    """What is inferred for a row."""
    session = capture.pipeline.indexer
    session.conversation_state.update(session.generation)
    frame, connection = int(session.table.response.values[number]), int(session.table.connection.values[number])
    read = session.frames.read(frame)
    return capture._decoder._orphans.inference.verdict(frame, connection, session.generation, *read)


def score_without(folder: Path, share: float, names: tuple[str, ...]) -> Score:
    """Judge in captures that have that share of the requests."""
    score = Score()
    chance = random.Random(7)
    for exchanges in conversations(names):
        kept = {each.row.number for each in exchanges if chance.random() < share}
        truth = {(each.row.connection, each.response.data): each for each in exchanges if each.response is not None}
        with Capture([rewritten(folder, exchanges, kept)], show_secrets=True) as capture:
            for _ in capture.read():
                pass
            for number, connection, data in lone_rows(capture):
                true = truth[connection, data]
                score.enter(verdict_of(capture, number), true.row.api, truth_of(true))
    return score


@pytest.mark.long
@of_captures
def test_lone_frames_are_mostly_recognized(names: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    score = Score()
    for exchanges in conversations(names):
        for each in exchanges:
            assert each.response is not None
            data = each.response.data
            score.enter(infer_response(data, len(data), len(data), NOTHING), each.row.api, truth_of(each))
    with capsys.disabled():
        print(score.summary("frames by themselves"))
    assert score.share(score.right.total()) > 0.86


@pytest.mark.long
@of_captures
@pytest.mark.parametrize(("kept", "floor"), [(0.0, 0.86), (0.5, 0.87)])
def test_responses_without_requests_are_mostly_recognized(
    tmp_path: Path,
    kept: float,
    floor: float,
    names: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    score = score_without(tmp_path, kept, names)
    with capsys.disabled():
        print(score.summary(f"{kept:.0%} of the requests there"))
    assert score.share(score.right.total()) > floor
    assert score.share(score.among_three) > 0.96
    assert score.right_by_confidence[Confidence.SURE] > 0.99 * score.by_confidence[Confidence.SURE]

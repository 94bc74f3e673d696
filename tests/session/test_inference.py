"""Responses whose requests are gone, held against what the whole captures say they are.

The bundled conversations are told again with requests left out, all of them or half, and read as captures of their own.
The share of responses that are recognised is printed and must not fall.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dissector.capture_file import Capture
from dissector.protocol.inference.evidence import NOTHING
from dissector.protocol.inference.verdict import Confidence, Verdict, judge
from dissector.session.exchange import Exchange
from tests.conftest import CAPTURES
from tests.traffic import Turn, capture_of, conversation

FIRST_PORT = 40_000
MOST = 8
"""Responses of an API that are judged in a capture: the many alike would hide the others, and take long."""
Pair = tuple[int, int]


@dataclass
class Score:
    """Right and wrong, by API and by what was said of it."""

    asked: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    layouts: int = 0
    among_three: int = 0
    said: Counter[Confidence] = field(default_factory=Counter)
    said_right: Counter[Confidence] = field(default_factory=Counter)

    def enter(self, verdict: Verdict, name: str, truth: Pair) -> None:
        """One response judged. A layout is right where the true version is among those that share it."""
        found = [(each.layout.api.key, each.layout.versions) for each in verdict.candidates]
        fits = [key == truth[0] and truth[1] in versions for key, versions in found]
        right = bool(found) and found[0][0] == truth[0]
        self.asked[name] += 1
        self.right[name] += right
        self.layouts += fits[:1] == [True]
        self.among_three += any(fits[:3])
        self.said[verdict.confidence] += 1
        self.said_right[verdict.confidence] += right

    def share(self, count: int) -> float:
        return count / self.asked.total()

    def told(self, title: str) -> str:
        """The figures in words, and the APIs that are taken for another one."""
        wrong = ", ".join(f"{name} {self.right[name]}/{n}" for name, n in self.asked.items() if self.right[name] < n)
        said = ", ".join(f"{word} {n} ({self.said_right[word] / n:.0%} right)" for word, n in self.said.items())
        return (
            f"\n{title}: {self.asked.total()} responses: API {self.share(self.right.total()):.1%}, "
            f"layout too {self.share(self.layouts):.1%}, among the first three {self.share(self.among_three):.1%}"
            f"\n  {said}\n  not always right: {wrong}"
        )


@pytest.fixture(scope="module")
def conversations() -> dict[str, list[Exchange]]:
    """The paired exchanges of every bundled capture."""
    found = {}
    for path in CAPTURES:
        with Capture([str(path)], show_secrets=True) as capture:
            found[path.stem] = [
                e
                for e in capture.exchanges()
                if e.request and e.response and e.response.shape.body and e.row.kind != "sasl"
            ]
    return found


def truth_of(exchange: Exchange) -> Pair:
    assert exchange.api_key is not None
    assert exchange.response is not None
    return exchange.api_key, exchange.response.shape.body_version


def sampled(exchanges: list[Exchange]) -> Iterator[Exchange]:
    """The first few of every API."""
    seen: Counter[str] = Counter()
    for exchange in exchanges:
        seen[exchange.row.api] += 1
        if seen[exchange.row.api] <= MOST:
            yield exchange


def told_again(folder: Path, exchanges: list[Exchange], kept: set[int]) -> str:
    """A capture of the same conversations with those requests that are kept, by the number of their row."""
    turns: dict[int, list[tuple[int, Turn]]] = {}
    for each in exchanges:
        assert each.request is not None
        assert each.response is not None
        said = turns.setdefault(each.row.connection, [])
        if each.row.number in kept:
            said.append((each.request.time_ns, Turn(True, each.request.data)))
        said.append((each.response.time_ns, Turn(False, each.response.data)))
    packets = []
    for connection, said in turns.items():
        said.sort(key=lambda pair: pair[0])
        packets += conversation([turn for _, turn in said], client=("10.0.0.1", FIRST_PORT + connection))
    return capture_of(folder, packets)


def connection_of(exchange: Exchange) -> int:
    """The connection's number in the capture that the conversation is told after."""
    return int(exchange.row.client.rpartition(":")[2]) - FIRST_PORT


def verdict_of(capture: Capture, number: int) -> Verdict:
    """What is inferred for a row."""
    session, lookup = capture._session, capture._lookup
    frame, connection = int(session.table.response.values[number]), int(session.table.connection.values[number])
    return lookup._inference.verdict(frame, connection, session.generation)


def score_without(folder: Path, conversations: dict[str, list[Exchange]], share: float) -> Score:
    """Judge in captures that have that share of the requests."""
    score = Score()
    chance = random.Random(7)
    for exchanges in conversations.values():
        kept = {each.row.number for each in exchanges if chance.random() < share}
        lost = {
            (each.row.connection, each.response.data): each
            for each in sampled([e for e in exchanges if e.row.number not in kept])
            if each.response is not None
        }
        with Capture([told_again(folder, exchanges, kept)], show_secrets=True) as capture:
            for number, each in enumerate(capture.exchanges()):
                assert (each.request is None) == (each.row.api.endswith("?") or each.row.kind == "sasl")
                assert each.response is not None
                true = lost.get((connection_of(each), each.response.data))
                if true is not None and each.row.kind == "exchange":
                    score.enter(verdict_of(capture, number), true.row.api, truth_of(true))
    return score


def test_lone_frames_are_mostly_recognised(
    conversations: dict[str, list[Exchange]], capsys: pytest.CaptureFixture[str]
) -> None:
    score = Score()
    for exchanges in conversations.values():
        for each in sampled(exchanges):
            assert each.response is not None
            data = each.response.data
            score.enter(judge(data, len(data), len(data), NOTHING), each.row.api, truth_of(each))
    with capsys.disabled():
        print(score.told("frames by themselves"))
    assert score.share(score.right.total()) > 0.9


@pytest.mark.parametrize(("kept", "floor"), [(0.0, 0.9), (0.5, 0.9)])
def test_responses_without_requests_are_mostly_recognised(
    conversations: dict[str, list[Exchange]],
    tmp_path: Path,
    kept: float,
    floor: float,
    capsys: pytest.CaptureFixture[str],
) -> None:
    score = score_without(tmp_path, conversations, kept)
    with capsys.disabled():
        print(score.told(f"{kept:.0%} of the requests there"))
    assert score.share(score.right.total()) > floor
    assert score.said_right[Confidence.SURE] > 0.99 * score.said[Confidence.SURE]

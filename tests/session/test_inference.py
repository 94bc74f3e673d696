"""Responses whose requests are gone, held against what the whole captures say they are.

The bundled conversations are told again with requests left out, all of them or half, and read as captures of their own.
The share of responses that are recognised is printed and must not fall.
"""

import json
import random
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dissector.capture_file import Capture
from dissector.cli.json_lines import json_line
from dissector.protocol.inference.evidence import NOTHING
from dissector.protocol.inference.verdict import Confidence, Verdict, judge
from dissector.session.exchange import Exchange
from dissector.session.table import NO_FRAME, RowKind
from tests.conftest import CAPTURES
from tests.traffic import Turn, capture_of, conversation, request, response

FIRST_PORT = 40_000
MOST = 4
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
def conversations() -> list[list[Exchange]]:
    """Of every bundled capture the first few paired exchanges of each API."""
    found = []
    for path in CAPTURES:
        with Capture([str(path)], show_secrets=True) as capture:
            paired = [
                each for each in capture.exchanges() if each.request and each.response and each.row.kind != "sasl"
            ]
        found.append(list(sampled([each for each in paired if each.response and each.response.shape.body])))
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


def lone_rows(capture: Capture) -> Iterator[tuple[int, int, bytes]]:
    """Responses without a request: number of the row, connection in the capture that is told again, bytes."""
    table, frames = capture._session.table, capture._session.frames
    for number in range(len(capture)):
        if table.kind.values[number] == RowKind.EXCHANGE and table.request.values[number] == NO_FRAME:
            data, _ = frames.read(int(table.response.values[number]))
            (_, client), _ = capture._transport.flows.endpoints(int(table.connection.values[number]))
            yield number, client - FIRST_PORT, data


def verdict_of(capture: Capture, number: int) -> Verdict:
    """What is inferred for a row."""
    session = capture._session
    session.knowledge.learn(session.generation)
    frame, connection = int(session.table.response.values[number]), int(session.table.connection.values[number])
    return capture._lookup._inference.verdict(frame, connection, session.generation)


def score_without(folder: Path, conversations: list[list[Exchange]], share: float) -> Score:
    """Judge in captures that have that share of the requests."""
    score = Score()
    chance = random.Random(7)
    for exchanges in conversations:
        kept = {each.row.number for each in exchanges if chance.random() < share}
        truth = {(each.row.connection, each.response.data): each for each in exchanges if each.response is not None}
        with Capture([told_again(folder, exchanges, kept)], show_secrets=True) as capture:
            for _ in capture.read():
                pass
            for number, connection, data in lone_rows(capture):
                true = truth[connection, data]
                score.enter(verdict_of(capture, number), true.row.api, truth_of(true))
    return score


def test_lone_frames_are_mostly_recognised(
    conversations: list[list[Exchange]], capsys: pytest.CaptureFixture[str]
) -> None:
    score = Score()
    for exchanges in conversations:
        for each in exchanges:
            assert each.response is not None
            data = each.response.data
            score.enter(judge(data, len(data), len(data), NOTHING), each.row.api, truth_of(each))
    with capsys.disabled():
        print(score.told("frames by themselves"))
    assert score.share(score.right.total()) > 0.89


@pytest.mark.parametrize(("kept", "floor"), [(0.0, 0.88), (0.5, 0.89)])
def test_responses_without_requests_are_mostly_recognised(
    conversations: list[list[Exchange]],
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


def test_what_is_inferred_is_labelled_everywhere(conversations: list[list[Exchange]], tmp_path: Path) -> None:
    said: Counter[str] = Counter()
    for exchanges in conversations[:8]:
        kept = {each.row.number for each in exchanges[::2]}
        with Capture([told_again(tmp_path, exchanges, kept)], show_secrets=True) as capture:
            for each in capture.exchanges():
                codes = {finding.code for finding in each.findings}
                if each.request is not None:
                    assert not codes & {"orphan", "inferred"}
                    continue
                line = json.loads(json_line(each))
                assert each.response is not None
                assert "orphan" in codes
                assert line["api_key"] is None
                claims = each.row.api != "?"
                assert claims == each.row.info.startswith("by inference, ") == (line["response"]["body"] != {})
                assert claims == (each.row.version is not None) == (each.response.tree.find("body") is not None)
                assert "inferred" in codes or not claims
                assert line["api"] == (each.row.api if claims else None)
                said[each.row.info.split(":")[0]] += 1
    assert {"by inference, sure", "by inference, a guess"} <= said.keys()


def test_exchanges_that_have_their_request_do_not_change(conversations: list[list[Exchange]], tmp_path: Path) -> None:
    for exchanges in conversations[:8]:
        before = {each.request.data: each for each in exchanges if each.request is not None}
        kept = {each.row.number for each in exchanges[::2]}
        with Capture([told_again(tmp_path, exchanges, kept)], show_secrets=True) as capture:
            paired = [each for each in capture.exchanges() if each.request is not None and each.response is not None]
        assert len(paired) == len(kept)
        for each in paired:
            assert each.request is not None
            true = before[each.request.data]
            assert (each.row.api, each.row.version) == (true.row.api, true.row.version)
            assert each.request.shape == true.request.shape if true.request else False
            assert each.response is not None
            assert each.response.shape == true.response.shape if true.response else False


def test_a_verdict_does_not_depend_on_what_was_looked_at_before(
    conversations: list[list[Exchange]], tmp_path: Path
) -> None:
    path = told_again(tmp_path, conversations[1], set())
    tables = []
    for step in (1, -1):
        with Capture([path]) as capture:
            for _ in capture.read():
                pass
            rows = {number: capture.row(number) for number in range(len(capture))[::step]}
        tables.append([(rows[number].api, rows[number].version, rows[number].info) for number in sorted(rows)])
    assert tables[0] == tables[1]


def test_a_broker_offers_the_same_to_all_its_clients(tmp_path: Path) -> None:
    # Heartbeat v1-3 and LeaveGroup v1-2 look alike; the broker, asked by another client, has no Heartbeat.
    versions = struct.pack(">hi", 0, 2) + struct.pack(">hhh", 13, 0, 2) + struct.pack(">hhh", 18, 0, 0)
    asked = [Turn(True, request(1, api_key=18, version=0, body=b"")), Turn(False, response(1, versions))]
    lone = [Turn(True, request(1)), Turn(False, response(1)), Turn(False, response(9, struct.pack(">ih", 100, 25)))]
    packets = conversation(asked) + conversation(lone, client=("10.0.0.1", 40_002))
    with Capture([capture_of(tmp_path, packets)]) as capture:
        rows = [each.row for each in capture.exchanges()]
    assert [(row.api, row.version) for row in rows] == [("ApiVersions", 0), ("Metadata", 0), ("LeaveGroup?", 2)]

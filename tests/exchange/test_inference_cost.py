"""Responses without requests cost little, however many a connection has, and lose nothing by it."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dissector import encode_response
from dissector.capture_session import Capture
from dissector.exchange import response_inference
from dissector.index.exchange_table import RowsByConnection
from dissector.protocol.codec.plan import StructPlan
from dissector.protocol.inference.scoring import Scorer
from dissector.protocol.inference.verdict import InferenceVerdict, infer
from dissector.protocol.schema.loader import apis
from tests.conftest import PCAPS, some_of
from tests.index.inferred_rows import rewritten
from tests.traffic import Turn, capture_of, conversation, request, response


def count_scored(monkeypatch: pytest.MonkeyPatch) -> list[StructPlan]:
    """The layouts that are scored from now on."""
    scored: list[StructPlan] = []
    score = Scorer.message

    def noted(scorer: Scorer, plan: StructPlan) -> None:
        scored.append(plan)
        score(scorer, plan)

    monkeypatch.setattr(Scorer, "message", noted)
    return scored


@pytest.mark.slow
@pytest.mark.parametrize("values", [range(256), (0, 0, 0, 1, 2)])
def test_many_orphans_of_a_connection_try_few_layouts(
    values: "range | tuple[int, ...]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(1)
    turns = [Turn(False, response(n, bytes(chance.choices(values, k=30)))) for n in range(600)]
    path = capture_of(tmp_path, conversation(turns))
    scored = count_scored(monkeypatch)
    with Capture([path]) as capture:
        list(capture.read())
        assert len([exchange.row for exchange in capture.exchanges()]) == 600
    assert len(scored) < 40 * 600


@pytest.mark.long
@pytest.mark.slow
def test_later_orphans_are_inferred_as_among_all_layouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Capture([str(PCAPS / "librdkafka-pipelined.pcapng")]) as capture:
        list(capture.read())
        exchanges = list(capture.exchanges())
        path = rewritten(tmp_path, exchanges, set())
    found = []
    for first in (8, 1 << 30):
        monkeypatch.setattr(response_inference, "FIRST_ORPHANS", first)
        with Capture([path]) as capture:
            list(capture.read())
            found.append([(each.row.api, each.row.version) for each in capture.exchanges()])
    assert found[0] == found[1]
    assert len(found[0]) > 100


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("size", some_of([30, 2_000], 30))
def test_the_same_responses_of_many_connections_are_inferred_once(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inferred = Counter[int]()
    bodies = [random.Random(n).randbytes(size) for n in range(10)]
    for connections in (3, 200):
        talks = [
            conversation([Turn(False, response(1_000 * port + n, body)) for n, body in enumerate(bodies)],
                         client=("10.0.0.1", port + 1_024))
            for port in range(connections)
        ]  # fmt: skip
        path = capture_of(tmp_path, [packet for turn in zip(*talks, strict=True) for packet in turn])

        def counted(*args: Any, connections: int = connections) -> InferenceVerdict:
            inferred[connections] += 1
            return infer(*args)

        monkeypatch.setattr(response_inference, "infer", counted)
        with Capture([path]) as capture:
            list(capture.read())
            assert len(list(capture.exchanges())) == 10 * connections
    assert inferred[200] == inferred[3]


@pytest.mark.long
@pytest.mark.slow
def test_orphans_of_every_api_on_one_connection_try_few_layouts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layouts = [(api.key, version) for api in apis() for version in api.versions]
    frames = [encode_response(key, version, {}, correlation_id=n) for n, (key, version) in enumerate(layouts)]
    random.Random(1).shuffle(frames)
    path = capture_of(tmp_path, conversation([Turn(False, frame) for frame in frames * 4]))
    scored = count_scored(monkeypatch)
    with Capture([path]) as capture:
        rows = len(list(capture.exchanges()))
    assert rows == 4 * len(frames)
    assert len(scored) < 6 * rows


@pytest.mark.parametrize("is_random", [False, True])
def test_a_response_alone_on_its_connection_is_scored_once(
    is_random: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is inferred to be evidence, and again as the first response of its connection. Of random bytes that fit no
    layout the headers alone are scored, in both versions."""
    scored: list[tuple[bytes, int]] = []
    score = Scorer.message

    def noted(scorer: Scorer, plan: StructPlan) -> None:
        scored.append((scorer._data, id(plan)))
        score(scorer, plan)

    chance = random.Random(1)
    bodies = [chance.randbytes(200) if is_random else bytes(6 + 4 * port) for port in range(100)]
    packets = [
        packet
        for port, body in enumerate(bodies)
        for packet in conversation([Turn(False, response(port, body))], client=("10.0.0.1", port + 1))
    ]
    path = capture_of(tmp_path, packets)
    monkeypatch.setattr(Scorer, "message", noted)
    with Capture([path]) as capture:
        assert len(list(capture.exchanges())) == 100
    assert len(scored) == 200 if is_random else 230 < len(scored) < 1.1 * len(set(scored))


def test_the_requests_of_a_connection_are_put_in_order_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That it answers none of them took each response a walk over all."""
    waiting = [Turn(True, request(number)) for number in range(7)]
    answers = [Turn(False, response(100 + number, bytes(30))) for number in range(20)]
    path = capture_of(tmp_path, conversation([*waiting, *answers]))
    asked: list[int] = []
    rows = RowsByConnection.rows
    with Capture([path]) as capture:
        list(capture.read())
        exchanges = list(capture.exchanges())  # what is inferred from the connection is known from here on
        monkeypatch.setattr(RowsByConnection, "rows", lambda *given: (asked.append(1), rows(*given))[1])
        assert len(list(capture.exchanges())) == len(exchanges) == 27
    words = {exchange.findings[0].message for exchange in exchanges[7:]}
    assert len(asked) <= 1
    assert {each.partition("; ")[2] for each in words} == {"0, 1, 2, … wait"}

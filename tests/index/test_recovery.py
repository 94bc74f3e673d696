"""After losses: what is intact is found again, and nothing is invented. `python -m tools.recovery` measures more."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import CAPTURES, VARIED
from tests.traffic import Packet, Turn, conversation, ethernet, pcap, request, response, seeds
from tools.recovery import LOSSES, Found, Loss, Score, found, lossy

LEAST: dict[str, tuple[float, float]] = {
    "started late": (0.99, 0.98),
    "cut": (0.99, 0.99),
    "sparse": (0.995, 0.995),
    "requests only": (0.99, 0.0),
    "responses only": (0.0, 0.9),
}
"""The shares of intact requests and responses that are found : what is measured, less a little."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "captures",
    [[path for path in CAPTURES if path.stem in VARIED], pytest.param(CAPTURES, marks=pytest.mark.exhaustive)],
    ids=["varied", "all"],
)
@pytest.mark.parametrize("name", LOSSES)
def test_what_the_bundled_captures_lose_is_all_that_is_lost(tmp_path: Path, name: str, captures: list[Path]) -> None:
    score = Score()
    for path in captures:
        lossy(path, LOSSES[name], 1, tmp_path, score)
    assert score.invented == []
    assert score.requests_found >= LEAST[name][0] * score.requests
    assert score.responses_found >= LEAST[name][1] * score.responses


def talk(chance: random.Random, count: int, port: int) -> list[Packet]:
    """A client with a few requests in flight, of all sizes, some in several segments, some several a segment."""
    turns: list[Turn] = []
    number = chance.randrange(1 << chance.choice([4, 12, 20]))
    while count > 0:
        flight = range(number, number + chance.randint(1, 4))
        sizes = [chance.choice([4, 40, 400, 4000]) for _ in flight]
        sent = [
            request(n, api_key=3, version=1, body=chance.randbytes(size)) for n, size in zip(flight, sizes, strict=True)
        ]
        turns += [Turn(True, b"".join(sent))] if chance.random() < 0.5 else [Turn(True, each) for each in sent]
        turns += [Turn(False, response(n, chance.randbytes(chance.choice([6, 60, 6000])))) for n in flight]
        number += len(flight)
        count -= len(flight)
    return conversation(turns, handshake=chance.random() < 0.5, server=("10.0.0.2", port), client=("10.0.0.1", 50_001))


@pytest.mark.slow
@given(
    chance=seeds,
    count=st.integers(20, 40),
    port=st.sampled_from([9092, 5555]),
    loss=st.sampled_from([*LOSSES.values()]),
)
def test_nothing_is_invented_and_nearly_all_is_found(
    tmp_path: Path, chance: random.Random, count: int, port: int, loss: Loss
) -> None:
    packets = [ethernet(packet) for packet in talk(chance, count, port)]
    left = loss(packets, chance)
    path = tmp_path / "made.pcap"

    def read(numbers: list[int]) -> Found:
        path.write_bytes(pcap([packets[n] for n in numbers]))
        return found(str(path))

    score = Score()
    missed = score.enter(read(list(range(len(packets)))), set(left), read(left))
    assert score.invented == []
    assert len(missed) <= 8

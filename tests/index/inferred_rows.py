"""The bundled conversations, rewritten without some requests: captures whose truth is known."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from tests.conftest import CAPTURES, PCAPS
from tests.traffic import Turn, capture_of, conversation

FIRST_PORT: Final = 40_000
EVERY: Final = tuple(path.stem for path in CAPTURES)
FEW: Final = EVERY[:8]
MOST: Final = 3
"""Exchanges of an API that are taken from a capture: the many similar ones would hide the others, and take long."""


@cache
def conversations(names: tuple[str, ...] = EVERY) -> list[list[Exchange]]:
    """Return the first few paired exchanges of each API of each of these bundled captures."""
    found = []
    for path in (PCAPS / f"{name}.pcapng" for name in names):
        with Capture([str(path)], show_secrets=True) as capture:
            paired = [
                each for each in capture.exchanges() if each.request and each.response and each.row.kind != "sasl"
            ]
        found.append(list(sampled([each for each in paired if each.response and each.response.layout.body])))
    return found


def sampled(exchanges: list[Exchange]) -> Iterator[Exchange]:
    """The first few of every API."""
    seen: Counter[str] = Counter()
    for exchange in exchanges:
        seen[exchange.row.api] += 1
        if seen[exchange.row.api] <= MOST:
            yield exchange


def rewritten(folder: Path, exchanges: list[Exchange], kept: set[int]) -> str:
    """A capture of the same conversations with those requests that are kept, by the number of their row."""
    turns: dict[int, list[tuple[int, Turn]]] = {}
    for each in exchanges:
        assert each.request is not None
        assert each.response is not None
        turns_of_connection = turns.setdefault(each.row.connection, [])
        if each.row.number in kept:
            turns_of_connection.append((each.request.time_ns, Turn(True, each.request.data)))
        turns_of_connection.append((each.response.time_ns, Turn(False, each.response.data)))
    packets = []
    for connection, turns_of_connection in turns.items():
        turns_of_connection.sort(key=lambda pair: pair[0])
        packets += conversation([turn for _, turn in turns_of_connection], client=("10.0.0.1", FIRST_PORT + connection))
    return capture_of(folder, packets)

"""A lone response between two holes is found by the request that waits for it, and by nothing else."""

import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dissector.capture_session import Capture
from dissector.conversation import pcapng
from dissector.exchange.model import ExchangeRow
from dissector.export.packets import carrying_packets
from tests.cases import cases
from tests.conftest import BUNDLED
from tests.traffic import Packet, Turn, capture_of, conversation, request, response, seeds

FIRST = 1


def rows(path: str) -> list[ExchangeRow]:
    with Capture([path]) as capture:
        return [exchange.row for exchange in capture.exchanges()]


def between_holes(data: bytes, sizes: list[int], request_count: int = 5) -> list[Packet]:
    """A client asks five times; of all that the server says, `data` alone is there, in segments of these sizes."""
    turns = [Turn(True, request(FIRST + n)) for n in range(request_count)]
    packets = conversation([*turns, Turn(False, response(FIRST, bytes(100))), Turn(False, data), Turn(False, b"lost")])
    opening, lost = packets[: 2 + request_count], packets[2 + request_count]
    at, heard, place = lost.seq + len(lost.payload), [], 0
    for size in sizes:
        heard.append(Packet(False, at + place, data[place : place + size], lost.flags, lost.ack))
        place += size
    behind = Packet(False, at + len(data) + 50, b"", lost.flags | 1, lost.ack)  # its FIN shows the second hole
    return [*opening, *heard, behind]


@cases("last", [1, 3, 7, 8, 40])
def test_it_is_found_however_little_its_last_segment_holds(tmp_path: Path, last: int) -> None:
    data = response(FIRST + 3, bytes(100))
    path = capture_of(tmp_path, between_holes(data, [66, len(data) - 66 - last, last]))
    complete = [row for row in rows(path) if row.response_size is not None and row.kind == "exchange"]
    assert [(row.correlation_id, row.response_size) for row in complete] == [(FIRST + 3, len(data))]


@cases("wrong", ["id", "size", "request comes later"])
def test_it_is_not_believed_where_id_or_size_is_wrong(tmp_path: Path, wrong: str) -> None:
    data = response(FIRST + 90_000 if wrong == "id" else FIRST + 3, bytes(100))
    if wrong == "size":
        data = (len(data) - 5).to_bytes(4, "big") + data[4:]
    packets = between_holes(data, [66, len(data) - 69, 3])
    if wrong == "request comes later":
        packets = [*packets[:2], *packets[7:-1], *packets[2:7], packets[-1]]
    assert not [row for row in rows(capture_of(tmp_path, packets)) if row.kind == "exchange" and row.response_size]


@pytest.mark.slow
@given(chance=seeds, size=st.integers(8, 3000), dull=st.booleans())
def test_other_bytes_are_never_taken_for_one(
    tmp_path_factory: pytest.TempPathFactory, chance: random.Random, size: int, dull: bool
) -> None:
    """Random bytes, and such as are mostly zeros, of which sizes and ids are mostly made too."""
    data = chance.randbytes(size)
    if dull:
        data = bytes(byte if byte > 200 else 0 for byte in data)
    cuts = sorted({0, size, *(chance.randrange(size) for _ in range(chance.randrange(5)))})
    assume(not any(at + 4 + int.from_bytes(data[at : at + 4], "big") in cuts for at in cuts))  # a frame, by chance
    packets = between_holes(data, [high - low for low, high in pairwise(cuts)])
    found = rows(capture_of(tmp_path_factory.mktemp("holes"), packets))
    assert not [row for row in found if row.kind == "exchange" and row.response_size is not None]
    assert sum(row.response_size or 0 for row in found if row.kind == "unparsed") == size


def identity(row: ExchangeRow) -> tuple[object, ...]:
    return row.client, row.api, row.version, row.correlation_id, row.client_id, row.request_size, row.response_size


@pytest.mark.slow
@pytest.mark.parametrize("path", BUNDLED)
def test_few_rows_exported_are_read_back_as_they_were(tmp_path: Path, path: Path) -> None:
    """What is left out around them is holes."""
    chance = random.Random(path.stem)
    with Capture([str(path)]) as capture:
        for _ in capture.read():
            pass
        for _ in range(3):
            first = chance.randrange(len(capture))
            some = range(first, min(len(capture), first + chance.randint(1, 4)))
            request_count = [identity(exchange.row) for exchange in capture.at(some) if exchange.row.kind == "exchange"]
            copy = tmp_path / "few.pcapng"
            copy.write_bytes(b"".join(pcapng(carrying_packets(capture, some), "made for a test")))
            again = [identity(row) for row in rows(str(copy))]
            assert [row for row in request_count if row not in again] == []

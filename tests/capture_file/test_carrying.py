"""A capture put down and taken up between any two packets has the rows of one that is read at once."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.capture.files import Reader, open_capture
from dissector.capture.parts import Block, Part, block
from dissector.capture_file import Capture
from dissector.json_lines import exchange_object
from dissector.store import Store
from tests.conftest import CAPTURES, PCAPS

Row = tuple[int, int, str]


def packets(path: Path) -> list[Block]:
    """The packets of a capture, a block each."""
    store = Store()
    reader = open_capture(str(path), store, lambda name, data: True)
    assert isinstance(reader, Reader)
    found = [block(batch, np.array([row])) for batch in reader.batches() for row in range(len(batch))]
    store.release()
    reader.close()
    return found


def described(capture: Capture, rows: Sequence[int]) -> list[Row]:
    """Rows as anybody sees them, but for their numbers."""
    found = []
    for number in rows:
        exchange = capture.exchange(number)
        told = exchange_object(exchange)
        del told["number"]
        spans = capture.spans(number)
        found.append(
            (
                capture.packet_of(number),
                spans[0].start if spans else -1,
                json.dumps([told, exchange.row.info], default=str),
            )
        )
    return found


def at_once(blocks: list[Block]) -> list[Row]:
    with Capture([Part("all", blocks)]) as capture:
        for _ in capture.read():
            pass
        return sorted(described(capture, range(len(capture))))


def carried(blocks: list[Block], cuts: Sequence[int], *, taking: bool) -> tuple[list[Row], list[int]]:
    """The same, put down at each cut: all rows at the end, or those that are `taking` whenever they are settled; and
    how many bytes went along each time."""
    found: list[Row] = []
    bytes_carried: list[int] = []
    state = b""
    edges = [0, *sorted(cuts), len(blocks)]
    for low, high in zip(edges, edges[1:], strict=False):
        with Capture([Part("some", blocks[low:high])], carried=state) as capture:
            is_last = high == len(blocks)
            for _ in capture.read(settled=False) if is_last else capture.go_on():
                pass
            if taking or is_last:
                found += described(capture, capture.take_settled().tolist())
            if is_last:
                break
            state = capture.carry()
            bytes_carried.append(len(state))
    return sorted(found), bytes_carried


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_rows_are_those_of_the_whole(path: Path) -> None:
    blocks = packets(path)
    cuts = [len(blocks) * part // 7 for part in range(1, 7)]
    assert carried(blocks, cuts, taking=False)[0] == at_once(blocks)


@settings(max_examples=40)
@given(st.data())
def test_it_may_be_put_down_at_any_packet(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(CAPTURES))
    blocks = packets(path)
    cuts = data.draw(st.lists(st.integers(0, len(blocks) - 1), max_size=12, unique=True))
    assert carried(blocks, cuts, taking=False)[0] == at_once(blocks)

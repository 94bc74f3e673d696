"""Frames are numbered by their bytes, and what is learned does not depend on it."""

from pathlib import Path

import numpy as np
import pytest

from dissector.capture_session import Capture
from dissector.index import frame_table
from dissector.index.equal_messages import first_equal
from dissector.index.exchange_table import NO_FRAME
from dissector.index.frame_table import LONGEST, NO_NUMBER, equal_numbers
from dissector.protocol.message_layout import REQUEST_ID, RESPONSE_ID
from tests.conftest import BUNDLED, PCAPS
from tests.index.test_frame_table import table_of


def learned(path: Path) -> list[object]:
    """Everything that the messages of a capture teach."""
    with Capture([str(path)]) as capture:
        for _ in capture.read():
            pass
        capture.connections.learn()
        state, table = capture.pipeline.indexer.conversation_state, capture.pipeline.indexer.table
        connections = np.unique(table.connection.values[:]).tolist()
        of_connections = [(state.versions.advertised(each), state.versions.software(each)) for each in connections]
        mechanisms = [state.context(each, 1 << 40).mechanism for each in connections]
        places = zip(table.connection.values.tolist(), table.packet.values.tolist(), strict=True)
        contexts = [state.context(*place) for place in places]
        secrecy = [(each.may_have_secrets, each.may_cut_secrets) for each in contexts]
        return [state.shared_state(), of_connections, mechanisms, secrecy]


@pytest.mark.parametrize("path", BUNDLED)
def test_frames_of_one_number_are_equal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_table, "COPIED_TOGETHER", 1 << 14)
    with Capture([str(path)]) as capture:
        for _ in capture.read():
            pass
        table, frames = capture.pipeline.indexer.table, capture.pipeline.indexer.frames
        rows = table.response.values[table.response.values >= 0]
        for head in (0, 6):
            numbers = equal_numbers(frames, rows, 8, head).tolist()
            compared: dict[int, bytes] = {}
            for row, number in zip(rows.tolist(), numbers, strict=True):
                data = frames.read(row)[0]
                assert number != NO_NUMBER or len(data) <= 8 or len(data) < frames.size.values[row]
                same = data[:head] + data[8:]
                assert number == NO_NUMBER or compared.setdefault(number, same) == same


@pytest.mark.parametrize("path", BUNDLED)
def test_what_is_learned_is_that_of_frames_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = learned(path)
    monkeypatch.setattr(frame_table, "LONGEST", 0)
    assert learned(path) == found


def test_equal_responses_have_one_number() -> None:
    with Capture([str(PCAPS / "librdkafka-pipelined.pcapng")]) as capture:
        for _ in capture.read():
            pass
        table, frames = capture.pipeline.indexer.table, capture.pipeline.indexer.frames
        numbers = equal_numbers(frames, table.response.values[table.response.values >= 0], 8).tolist()
        assert len(set(numbers)) < len(numbers)


def test_equal_frames_of_different_parts_have_one_number(monkeypatch: pytest.MonkeyPatch) -> None:
    with Capture([str(PCAPS / "librdkafka-pipelined.pcapng")]) as capture:
        for _ in capture.read():
            pass
        frames = capture.pipeline.indexer.frames
        rows = np.tile(capture.pipeline.indexer.table.response.values[:40], 8)
        together = equal_numbers(frames, rows, 8)
        monkeypatch.setattr(frame_table, "COPIED_TOGETHER", int(frames.size.values[rows].sum()) // 3)
        apart = equal_numbers(frames, rows, 8)
        assert len(set(zip(together.tolist(), apart.tolist(), strict=True))) == len(set(together.tolist())) < 40


@pytest.mark.parametrize("path", BUNDLED)
def test_messages_count_as_equal_if_they_are_of_one_kind_and_the_same_to_the_byte(path: Path) -> None:
    with Capture([str(path)]) as capture:
        for _ in capture.read():
            pass
        table, frames = capture.pipeline.indexer.table, capture.pipeline.indexer.frames
        is_asked = table.has_request(np.arange(len(table)))
        for column, identity in ((table.request, REQUEST_ID), (table.response, RESPONSE_ID)):
            rows = np.flatnonzero(is_asked & (column.values != NO_FRAME))
            firsts: dict[tuple[object, ...], int] = {}
            wanted = []
            for at, row in enumerate(rows.tolist()):
                data, whole = frames.read(column.item(row))
                is_whole = frames.size.item(column.item(row)) == whole and identity.stop < whole <= LONGEST
                kind = table.api_key.item(row), table.version.item(row), data[: identity.start], data[identity.stop :]
                wanted.append(firsts.setdefault(kind if is_whole else (at,), at))
            assert first_equal(table, frames, rows, is_request=column is table.request).tolist() == wanted


def test_a_frame_in_pieces_has_a_number_if_all_of_it_is_there() -> None:
    table = table_of([[(True, 9), (True, 3)], [(True, 9), (False, 3)], [(True, 12)], [(True, 9), (True, 3)]])
    numbers = equal_numbers(table, np.arange(4), 4).tolist()
    assert [number == NO_NUMBER for number in numbers] == [False, True, False, False]

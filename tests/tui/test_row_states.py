"""What became of an exchange: answered, refused, in flight, unanswered, damaged; and that rows look so."""

from pathlib import Path

import pytest

from dissector.capture_session import Capture
from tests.cases import cases
from tests.conftest import PCAPS
from tests.findings.wire import Wire, pcap_of
from tests.traffic import Turn, capture_of, conversation, request, response
from tests.tui.main_driver import JAVA, opened
from tui.row_states import RowState, alarm_size, row_state


def states(path: str, *, is_read: bool = True) -> set[RowState]:
    with Capture([path]) as capture:
        return {row_state(exchange, is_read=is_read) for exchange in capture.exchanges()}


@cases(
    ("name", "state"),
    [("java", RowState.ANSWERED), ("java", RowState.NOTED), ("kraft-quorum", RowState.REFUSED),
     ("librdkafka-acks0", RowState.ONE_WAY), ("trouble-closed-in-flight", RowState.UNANSWERED),
     ("trouble-closed-in-flight", RowState.ANSWERED)],
)  # fmt: skip
def test_recordings_have_each_state(name: str, state: RowState) -> None:
    assert state in states(str(PCAPS / f"{name}.pcapng"))


def test_a_frame_that_was_not_captured_in_full_is_damaged(tmp_path: Path) -> None:
    turns = [Turn(True, request(1)), Turn(False, response(1)[:-4])]
    assert RowState.DAMAGED in states(capture_of(tmp_path, conversation(turns)))


def test_a_request_is_in_flight_until_the_capture_ends(tmp_path: Path) -> None:
    turns = [Turn(True, request(1)), Turn(False, response(1)), Turn(True, request(2)), Turn(False, response(3))]
    path = capture_of(tmp_path, conversation(turns))
    assert states(path, is_read=False) == {RowState.ANSWERED, RowState.WAITING, RowState.NOT_PENDING}
    assert states(path) == {RowState.ANSWERED, RowState.UNANSWERED, RowState.NOT_PENDING}


def test_an_intact_request_on_which_the_connection_was_closed_is_not_damaged(tmp_path: Path) -> None:
    wire = Wire()
    wire.exchange(1, "ApiVersions", 2, {}, {"api_keys": [{"api_key": 3, "max_version": 9}]})
    wire.request(3, "Metadata", 4, {"topics": []})
    wire.close(4)
    with Capture([pcap_of(tmp_path, wire)]) as capture:
        list(capture.read())
        list(capture.findings.examine())
        state = row_state(capture.exchange(1), is_read=True)
    assert state is RowState.CLOSED
    assert state.latency == "closed"


@cases(
    ("name", "state"),
    [("mistakes/java-tls-to-plain", RowState.FOREIGN), ("mistakes/java-plain-to-tls", RowState.FOREIGN)],
)
def test_what_is_not_kafka_is_not_damaged(name: str, state: RowState) -> None:
    assert state in states(str(PCAPS / f"{name}.pcapng"))


def test_each_state_with_something_to_say_looks_different() -> None:
    looks = [state.value for state in RowState]
    assert len(set(looks)) == len(looks)


def test_what_is_colored_of_the_info_column_is_what_is_wrong() -> None:
    with Capture([str(PCAPS / "trouble-rebalance-loop.pcapng")]) as capture:
        list(capture.findings.examine())
        for exchange in capture.exchanges():
            state, info = row_state(exchange, is_read=True), exchange.row.info
            alarm = info[: alarm_size(exchange, state)]
            if state is RowState.REFUSED:
                assert "rebalance-group" not in alarm, info
            assert bool(alarm) == (state in (RowState.REFUSED, RowState.DAMAGED)), info


@pytest.mark.long
async def test_cells_that_say_the_same_as_the_row_above_are_faint() -> None:
    async with opened(JAVA) as screen:
        faint = screen.list.color("repeated").color
        for position in range(2, 12):
            above, row = (screen.main.capture.exchange(number).row for number in (position - 1, position))
            line = screen.list.render_line(position + 1)
            parts = {part.text.strip() for part in line if part.style is not None and part.style.color == faint}
            assert (f"C{row.connection}" in parts) == (row.connection == above.connection)
            assert (row.api in " ".join(parts).split()) == (row.api == above.api)

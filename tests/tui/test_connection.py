"""The dialog about a connection: the numbers of `stats --connections`, its rows, names made safe."""

from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.cli.connections import connections_of
from tests.capture_session.test_host_names import named_capture
from tests.cases import cases
from tests.conftest import PCAPS
from tests.tui.main_driver import JAVA, Screen, opened
from tui.screens.connection_dialog import ConnectionDialog, connection_summary


@cases("name", ["java", "tls/java-1.3", "trouble-rebalance-loop"])
def test_the_numbers_are_those_of_stats(name: str) -> None:
    with Capture([str(PCAPS / f"{name}.pcapng")]) as capture:
        exchanges = list(capture.exchanges())
        for found in connections_of(capture, None):
            summary = connection_summary(capture, found["connection"])
            rows = [each.fields.number - 1 for each in exchanges if each.fields.connection == found["connection"]]
            assert (summary.first_row, summary.last_row, found["rows"]) == (rows[0], rows[-1], len(rows))
            assert [each.out for each in summary.counts] == list(found["out"].values())
            assert [each.back for each in summary.counts] == list(found["in"].values())
            facts = dict(summary.facts)
            assert (facts["client"], facts["broker"]) == (found["client"], found["server"])
            ids = {each.row.client_id for each in exchanges if each.fields.connection == found["connection"]}
            assert set(facts.get("client id", "").split(", ")) - {""} == ids - {"", None}


def test_hostile_names_are_made_safe(tmp_path: Path) -> None:
    with Capture([named_capture(tmp_path, b"\x1b[2Jbroker")]) as capture:
        list(capture.exchanges())
        facts = dict(connection_summary(capture, 1).facts)
    assert facts["broker"].endswith(", ␛[2Jbroker")


def dialog(screen: Screen) -> ConnectionDialog:
    found = screen.pilot.app.screen
    assert isinstance(found, ConnectionDialog)
    return found


@pytest.mark.long
async def test_a_key_opens_the_connection_of_the_row_and_goes_to_its_ends() -> None:
    async with opened(JAVA, size=(80, 24)) as screen:
        await screen.press("2", "0", "G", "W")
        connection = screen.main.capture.rows.connection_of(19)
        assert dialog(screen)._connection == connection
        text = screen.lines()
        assert f"Connection C{connection}" in text
        assert "handshake RTT" in text
        assert "zero windows" in text
        await screen.press("G")
        capture = screen.main.capture
        rows = [row for row in range(len(capture)) if capture.rows.connection_of(row) == connection]
        assert screen.main.number == rows[-1]
        await screen.press("W", "g")
        assert screen.main.number == rows[0]
        await screen.press("W", "escape")
        assert screen.pilot.app.screen is screen.main


@pytest.mark.exhaustive
async def test_the_row_of_another_end_may_be_hidden() -> None:
    async with opened(JAVA) as screen:
        screen.main.filter.apply("api == Fetch")
        await screen.settle()
        await screen.press("W", "g")
        assert any("hidden by the filter" in words for words in screen.notifications())

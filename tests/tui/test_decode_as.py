"""Saying what connections are, on the screen: chosen from menus, read again, shown, undone."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.detection.decode_as import DecodeAs
from tests.traffic import Turn, capture_of, conversation, exchanges
from tests.tui.main_driver import JAVA, Screen, opened
from tui.app import KDissectApp
from tui.features.decode_as import offered_connections
from tui.screens.dialog import Menu
from tui.screens.main_screen import MainScreen

BROKER = "127.0.0.1:9092"


@asynccontextmanager
async def opened_narrow(path: str) -> AsyncIterator[Screen]:
    async with opened(path, size=(80, 24)) as screen:
        yield screen


def clients(screen: Screen) -> list[str]:
    capture = screen.main.capture
    return [capture.exchange(row).row.client for row in range(len(capture))]


@pytest.mark.long
async def test_a_connection_is_hidden_and_comes_back() -> None:
    async with opened(JAVA) as screen:
        before = clients(screen)
        await screen.press("5", "G", "U", "enter", "end", "enter")  # this connection; not Kafka, the last choice
        await screen.settle()
        hidden = before[4]
        assert clients(screen) == [each for each in before if each != hidden]
        assert f"decode as {hidden}-{BROKER},none" in screen.text("#title")
        await screen.press("U", "end", "enter")  # undo, the last choice
        await screen.settle()
        assert clients(screen) == before
        assert "decode as" not in screen.text("#title")


@pytest.mark.exhaustive
async def test_filter_and_place_stay() -> None:
    async with opened(JAVA) as screen:
        screen.main.filter.apply("api == Metadata")
        await screen.settle()
        await screen.press("G")
        exchange = screen.main.model.exchange
        assert exchange is not None
        await screen.press("U", "down", "enter", "enter")  # all of its broker are Kafka's, as content says
        await screen.settle()
        assert screen.main.filter.text == "api == Metadata"
        assert "shown" in screen.text("#title")
        assert screen.main.model.exchange is not exchange
        assert screen.main.model.exchange.row == exchange.row
        await screen.press("W")
        assert "decoded as" in screen.lines()


@pytest.mark.exhaustive
async def test_the_broker_may_be_the_other_end() -> None:
    async with opened(JAVA) as screen:
        client = clients(screen)[0]
        await screen.press("U", "enter", "j", "enter")
        await screen.settle()
        assert str(screen.main.capture.decode_as[0]) == f"{BROKER}-{client},kafka"
        assert BROKER in clients(screen)


@pytest.mark.long
async def test_an_empty_capture_offers_what_is_in_it(tmp_path: Path) -> None:
    packets = [each for each in conversation(exchanges(1), server=("10.0.0.2", 7777)) if not each.from_client]
    async with opened_narrow(capture_of(tmp_path, packets[1:])) as screen:
        assert "press U" in screen.text("#empty")
        await screen.press("U")
        assert "10.0.0.2:7777" in screen.lines()
        await screen.press("enter", "enter")
        await screen.settle()
        assert len(screen.main.capture) == 1
        assert "1 decode-as" in screen.text("#title")


async def test_other_protocols_are_offered_by_server(tmp_path: Path) -> None:
    http = [Turn(True, b"GET / HTTP/1.1\r\n\r\n"), Turn(False, b"HTTP/1.1 200 OK\r\n\r\n")]
    packets = [p for n in (1, 2) for p in conversation(http, client=("10.0.0.1", n), server=("10.0.0.2", 80))]
    packets += conversation(exchanges(2))
    with Capture([capture_of(tmp_path, packets)]) as capture:
        list(capture.exchanges())
        names = [(each.name, each.words) for each in offered_connections(capture, 0)]
        assert names == [
            ("C3 10.0.0.1:40001 → 10.0.0.2:9092", "the connection of this row"),
            ("10.0.0.2:9092", "all connections to its broker"),
            ("10.0.0.2:80", "2 connections, HTTP"),
        ]


@pytest.mark.long
async def test_what_cannot_be_read_again_says_so(tmp_path: Path) -> None:
    with Path(JAVA).open("rb") as file:
        from dissector.capture.files import OpenFile

        with Capture([OpenFile("java", file)]) as capture:
            async with KDissectApp(MainScreen(capture)).run_test(size=(80, 24)) as pilot:
                screen = Screen(pilot)
                await screen.settle()
                await screen.press("U")
                assert not isinstance(pilot.app.screen, Menu)
                assert any("--decode-as" in words for words in screen.notifications())


@pytest.mark.exhaustive
async def test_choices_of_the_command_line_can_be_undone(tmp_path: Path) -> None:
    def opener(paths: Sequence[str], /, *, decode_as: Sequence[DecodeAs] = ()) -> Capture:
        return Capture(paths, decode_as=decode_as)

    with Capture([JAVA], ports=frozenset({9092})) as capture:
        async with KDissectApp(MainScreen(capture), opener).run_test(size=(120, 40)) as pilot:
            screen = Screen(pilot)
            await screen.settle()
            assert "decode as tcp.port==9092,kafka" in screen.text("#title")
            await screen.press("U", "end", "enter")
            await screen.settle()
            assert screen.main.capture.decode_as == ()

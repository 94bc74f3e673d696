"""Long messages: bytes at once, fields when they are traced."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.exchange.model import ExchangeMessage
from dissector.tls.record_parts import TlsRecord
from tests.conftest import some_of
from tests.findings.conversations import Talk, produce, written
from tests.tui.main_driver import opened
from tests.tui.test_search import ask
from tui.exchange_model import LONG_BYTES, LONG_RECORDS, ExchangeModel, TracedMessage
from tui.location_history import Location

MANY = LONG_RECORDS + 44


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Short messages first and last; between them three of many records, and one of many bytes."""
    talk = Talk()
    for at, (records, size) in enumerate([(1, 3), (MANY, 3), (MANY, 3), (MANY, 3), (1, LONG_BYTES), (1, 3)]):
        produce(talk, at, records, value=b"v" * size)
    return written(tmp_path, talk)


class Held:
    """Traces messages when the test allows it."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.begun: list[ExchangeMessage] = []

    def look(self, message: ExchangeMessage, records: Sequence[TlsRecord]) -> TracedMessage:
        self.begun.append(message)
        self.go.wait(5)  # the bound is for a test that fails
        return TracedMessage(message, records)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    held = Held()
    monkeypatch.setattr("tui.features.long_messages.TracedMessage", held.look)
    yield held
    held.go.set()


@pytest.mark.long
@pytest.mark.parametrize("row", some_of([1, 4], 4))
async def test_bytes_are_shown_at_once_and_fields_once_they_are_traced(path: str, held: Held, row: int) -> None:
    async with opened(path) as screen:
        assert not held.begun
        assert screen.main.go_to(row)
        assert screen.main.model.untraced is not None
        assert "reading…" in str(screen.main.query_one("#fields").border_title)
        await screen.pilot.pause(0.05)
        drawn = screen.lines()
        assert "header" not in drawn
        assert "made" in drawn  # the client id, among the bytes
        assert screen.main.model.source is not None
        exchange = screen.main.model.exchange
        assert exchange is not None
        assert exchange.request is not None
        assert screen.main.model.source.data == exchange.request.data
        held.go.set()
        await screen.settle()
        drawn = screen.lines()
        assert "reading…" not in drawn
        assert "header" in drawn
        await screen.press("enter", "down")
        assert screen.path


@pytest.mark.long
async def test_moving_on_traces_only_the_last_message(path: str, held: Held) -> None:
    async with opened(path) as screen:
        await screen.pilot.press("j")
        await screen.pilot.pause()
        await screen.until(lambda: held.begun)
        await screen.pilot.press("j", "j", "r", "r")
        held.go.set()
        await screen.settle()
        exchange = screen.main.model.exchange
        assert exchange is not None
        assert {id(message) for message in held.begun[1:]} == {id(exchange.request)}
        assert screen.main.model.traced is not None
        assert screen.main.model.traced.message is exchange.request
        assert "header" in screen.lines()


@pytest.mark.exhaustive
async def test_a_short_message_selected_meanwhile_stays(path: str, held: Held) -> None:
    async with opened(path) as screen:
        await screen.pilot.press("j")
        await screen.pilot.press("G")
        assert "reading…" not in screen.lines()
        held.go.set()
        await screen.settle()
        look = screen.main.model.traced
        assert look is not None
        assert look.message is screen.main.model.exchange.request


@pytest.mark.exhaustive
async def test_a_jump_to_a_field_arrives_when_the_message_is_traced(path: str, held: Held) -> None:
    async with opened(path) as screen:
        assert screen.main.go_to_place(Location(2, "request", "header.client_id"))
        await screen.pilot.pause()
        assert screen.path == ""
        assert "esc stops" in screen.text("#inspector")
        held.go.set()
        await screen.settle()
        assert screen.path == "header.client_id"


@pytest.mark.long
async def test_escape_cancels_a_jump_to_a_field_and_keys_still_work(path: str, held: Held) -> None:
    async with opened(path) as screen:
        assert screen.main.go_to_place(Location(2, "request", "header.client_id"))
        await screen.pilot.press("escape")
        assert "esc stops" not in screen.text("#inspector")
        held.go.set()
        await screen.settle()
        assert "header" in screen.lines()
        assert screen.path == ""


@pytest.mark.exhaustive
async def test_a_hit_in_a_long_message_is_highlighted_once_traced_and_keys_still_work(path: str, held: Held) -> None:
    async with opened(path) as screen:
        await ask(screen.pilot, "made")
        await screen.until(lambda: screen.main.model.selection is not None)
        await screen.pilot.press("n")
        await screen.until(lambda: screen.row == 1)
        assert screen.main.model.selection is None
        assert "esc stops" in screen.text("#inspector")
        await screen.pilot.press("G")
        assert screen.row == 5
        await screen.pilot.press("f7", "f7", "f7", "n")
        held.go.set()
        await screen.settle()
        source, selection = screen.main.model.source, screen.main.model.selection
        assert source is not None
        assert selection is not None
        assert source.data[selection.start : selection.stop] == b"made"
        assert "1 of 1 in this exchange" in screen.text("#inspector")


def test_a_model_that_waits_traces_every_message(path: str) -> None:
    with Capture([path]) as capture:
        for _ in capture.read():
            pass
        waiting, quick = ExchangeModel(capture), ExchangeModel(capture, waits=False)
        for row in range(len(capture)):
            waiting.choose(row)
            quick.choose(row)
            assert waiting.traced is not None
            assert (quick.traced is None) == (quick.untraced is not None) == (row in (1, 2, 3, 4))
            quick.trace_now()
            assert quick.traced is not None
            assert quick.traced.message is waiting.traced.message

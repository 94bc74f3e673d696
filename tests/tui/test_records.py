"""The record view."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.widgets import Static

from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from dissector.protocol.codec.writer import write
from dissector.protocol.records.from_json import batch_bytes
from dissector.records.record import ExchangeRecord, records_of
from dissector.records.values.opener import ValueOpener
from dissector.records.values.schemas import opener_with
from tests.cases import cases
from tests.conftest import PCAPS
from tests.traffic import Turn, capture_of, conversation, exchanges, request, response
from tests.tui.driver import SIZES
from tests.tui.main_driver import JAVA, Screen, opened
from tests.tui.shared_screens import SharedScreens
from tui.app import KDissectApp
from tui.features.views import record_nodes
from tui.record_labels import record_lines
from tui.screens.main_screen import MainScreen
from tui.screens.records_screen import RecordsScreen
from tui.widgets.records import RecordLines

ORDERS = str(PCAPS / "records/orders.pcapng")
SCHEMAS = str(PCAPS / "records/schemas")


@asynccontextmanager
async def records_of_orders(size: tuple[int, int] = (120, 40)) -> AsyncIterator[Screen]:
    with Capture([ORDERS], opener=opener_with(SCHEMAS)) as capture:
        app = KDissectApp(MainScreen(capture))
        async with app.run_test(size=size) as pilot:
            screen = Screen(pilot)
            await screen.settle()
            await screen.press("R")
            yield screen


def view(screen: Screen) -> RecordsScreen:
    found = screen.pilot.app.screen
    assert isinstance(found, RecordsScreen)
    return found


def lines(screen: Screen) -> RecordLines:
    return view(screen).query_one(RecordLines)


def title(screen: Screen) -> str:
    return str(view(screen).query_one("#title", Static).render())


@pytest.mark.long
async def test_capital_r_lists_all_records_at_every_size() -> None:
    async with records_of_orders(SIZES[0]) as screen:
        for size in SIZES:
            await screen.resize(size)
            drawn = screen.lines()
            for words in ("Records · orders", "● listed", "Topic-part", "bare-0", "Key", "Value", '"id":15'):
                assert words in drawn, (size, words)
        assert '"sku": "teapot"' in drawn
        assert "avro · schema bare-value shop.Order" in drawn


@pytest.mark.long
async def test_enter_goes_to_the_exchange_with_the_record_selected() -> None:
    async with records_of_orders() as screen:
        await screen.press("1", "3", "G")
        record = view(screen)._model.record(lines(screen).cursor)
        await screen.press("enter")
        assert isinstance(screen.pilot.app.screen, MainScreen)
        node = screen.main.model.node
        assert node is not None
        assert node.type == "RECORD"
        assert screen.main.model.side == "request"
        data = screen.main.model.chosen_bytes
        assert record.value in data
        await screen.press("R")
        assert view(screen)._model.row(lines(screen).cursor) == screen.main.number


@pytest.mark.exhaustive
async def test_it_opens_on_the_records_of_the_exchange_under_the_cursor(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        fetches = [row for row in range(60) if screen.main.capture.exchange(row).fields.api == "Fetch"]
        row = next(each for each in fetches if records_of(screen.main.capture.exchange(each)))
        screen.main.go_to(row)
        await screen.press("R")
        assert view(screen)._model.row(lines(screen).cursor) == row
        assert "Fetch" in screen.lines()


@pytest.mark.long
async def test_the_filter_reaches_into_values_and_completes_their_names() -> None:
    async with records_of_orders() as screen:
        await screen.press("slash")
        view(screen)._bar.edit("record.value.o")
        await screen.press("r")
        await screen.until(lambda: "record.value.order.id" in screen.lines())
        view(screen)._bar.edit("record.value.order.id == 17")
        await screen.press("enter")
        assert "2 records of 1 topic" in title(screen)
        await screen.press("escape")
        assert "96 records" in title(screen)
        view(screen)._bar.edit("record.valu == 1")
        await screen.press("enter")
        assert "did you mean record.value" in screen.lines()
        view(screen)._bar.edit("record.offset > 999")
        await screen.press("enter")
        assert "No record matches the filter" in screen.lines()
        await screen.press("escape", "escape")
        assert isinstance(screen.pilot.app.screen, MainScreen)


@pytest.mark.exhaustive
async def test_the_lists_filter_is_that_of_the_main_screen(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        screen.main.filter.apply("api == Fetch")
        await screen.settle()
        await screen.press("R")
        assert "100 records" in title(screen)
        await screen.press("q")
        assert screen.main.filter._run is not None


@pytest.mark.exhaustive
async def test_find_goes_on_around_the_end() -> None:
    async with records_of_orders() as screen:
        await screen.press("ctrl+f", *"STORGATAN", "enter")
        first = lines(screen).cursor
        assert '"address": "Storgatan 1"' in screen.lines()
        await screen.press("n", "N")
        assert lines(screen).cursor == first
        await screen.press("ctrl+f", *"nowhere", "enter")
        assert "no record has" in screen.notifications()[-1]


@pytest.mark.exhaustive
async def test_records_are_sorted_by_any_column() -> None:
    keys = {
        "Offset": lambda it: it.offset, "Time": lambda it: it.timestamp,
        "Topic": lambda it: (it.topic, it.partition),
        "Key": lambda it: it.key or b"", "Value": lambda it: it.value or b"",
        "Size": lambda it: -1 if it.value is None else len(it.value),
    }  # fmt: skip
    async with records_of_orders() as screen:
        screen_view = view(screen)
        for column, key in keys.items():
            screen_view._sort(column, descending=False)
            await screen.settle()
            model = screen_view._model
            found = [key(model.record(at)) for at in range(len(model))]
            assert found == sorted(found), column
            await screen.press("Z")
            assert [key(model.record(at)) for at in range(len(model))] == sorted(found, reverse=True), column


@pytest.mark.exhaustive
async def test_a_click_on_a_heading_sorts() -> None:
    async with records_of_orders() as screen:
        await screen.pilot.click("#records", offset=(5, 0))
        await screen.settle()
        assert "Offset▲" in screen.lines()


@pytest.mark.exhaustive
async def test_hex_shows_the_bytes() -> None:
    async with records_of_orders() as screen:
        await screen.press("1", "1", "G", "b")
        assert "000000  00 00 00 00 07" in screen.lines()
        await screen.press("b")
        assert "000000  00" not in screen.lines()


@pytest.mark.exhaustive
async def test_records_are_exported_as_they_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with records_of_orders() as screen:
        view(screen)._start("topic == orders && api == Fetch")
        await screen.settle()
        view(screen)._sort("Offset", descending=True)
        await screen.settle()
        await screen.pilot.press("x")
        await screen.until(lambda: "JSON lines" in screen.lines())
        await screen.pilot.press("down", "enter")
        await screen.until(lambda: "orders-records.jsonl" in screen.lines())
        await screen.pilot.press("enter")
        await screen.until(lambda: screen.notifications())
    written = [json.loads(line) for line in (tmp_path / "orders-records.jsonl").read_text().splitlines()]
    assert [each["value"]["order"]["id"] for each in written] == [18, 17, 16, 15]


@pytest.mark.long
async def test_a_hundred_thousand_records_cost_no_more_than_those_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = {"timestamp": 0, "key": None, "value": b'{"order":17}'.hex(), "headers": []}
    records = batch_bytes({"records": [value | {"offset": at} for at in range(1_000)]})
    topics = [{"name": "orders", "partition_data": [{"index": 0, "records": records}]}]
    body = write("ProduceRequest", 3, {"acks": 1, "timeout_ms": 9, "transactional_id": None, "topic_data": topics})
    answer = write("ProduceResponse", 3, {"responses": [], "throttle_time_ms": 0})
    turns = [
        turn for at in range(100)
        for turn in (Turn(True, request(at, api_key=0, version=3, body=body)), Turn(False, response(at, answer)))
    ]  # fmt: skip
    read: list[int] = []

    def counted(exchange: Exchange, opener: ValueOpener) -> list[ExchangeRecord]:
        read.append(exchange.fields.number)
        return records_of(exchange, opener)

    monkeypatch.setattr("tui.records_model.records_of", counted)
    async with opened(capture_of(tmp_path, conversation(turns))) as screen:
        await screen.press("R")
        assert "100,000 records of 1 topic" in title(screen)
        await screen.press("pagedown", "G", "pageup", *"50000G", "pagedown", "g")
    assert sorted(read) == [1, 50, 51, 100]


@pytest.mark.exhaustive
async def test_exchanges_without_records_say_so(tmp_path: Path) -> None:
    async with opened(capture_of(tmp_path, conversation(exchanges(2)))) as screen:
        await screen.press("R")
        assert "carry no records" in screen.lines()


@pytest.mark.long
@cases("name", ["records/orders", "java", "plain-socket-message-sets"])
def test_every_record_has_a_node_in_the_tree(name: str) -> None:
    with Capture([str(PCAPS / f"{name}.pcapng")]) as capture:
        for _ in capture.read():
            pass
        for exchange in capture.at(range(len(capture))):
            records = records_of(exchange)
            message = exchange.request if exchange.fields.api == "Produce" else exchange.response
            if records and message is not None:
                assert len(record_nodes(message.tree)) == len(records)


def test_a_long_value_wraps_in_bounded_lines() -> None:
    with Capture([ORDERS]) as capture:
        for _ in capture.read():
            pass
        record = records_of(next(capture.exchanges("topic == orders && api == Produce")))[0]
    record.value = b'{"text": "' + b"x" * 1_000_000 + b'"}'
    drawn = record_lines(record, "Produce 1", 80, as_hex=False)
    assert len(drawn) <= 10_000
    assert max(sum(len(text) for text, _ in line) for line in drawn) <= 80
    record.topic = "orders-" * 20
    for width in (57, 76, 80, 300):
        lines = ["".join(text for text, _ in line) for line in record_lines(record, "Produce 1", width, as_hex=False)]
        head = lines[: lines.index("")]
        assert all(len(line) <= width for line in head)
        assert all(words in " ".join(head) for words in ("-0 @ +0", "2026-", "Z  Produce 1"))
    assert "more characters" in drawn[-1][0][0]

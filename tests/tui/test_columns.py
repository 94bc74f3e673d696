"""The columns: which fit, which the user chooses, what a field's column shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.widgets import OptionList

from dissector.capture.process_notes import Process, ProcessNote
from dissector.capture_session import Capture
from dissector.cli.render.fields import exchange_lines
from dissector.exchange.row_fields import ROW_FIELDS
from tests.cases import cases
from tests.conftest import PCAPS
from tests.tui.main_driver import JAVA, Screen, opened
from tests.tui.test_sort import cells_of
from tui.labels import path_cell
from tui.list_columns import (
    INFO,
    MARKS_WIDTH,
    ListColumn,
    ListColumns,
    all_columns,
    elided,
    fitting,
    with_elided_names,
)
from tui.messages import AddColumn

PATHS = st.sampled_from(["request.topics.name", "response.body.error_code"])
NAMES = st.sampled_from([column.name for column in all_columns()])
WORDS = st.lists(
    st.builds(lambda name, width: name if width is None else f"{name}={width}", NAMES | PATHS,
              st.none() | st.integers(3, 80)),
    unique_by=lambda word: word.partition("=")[0],
)  # fmt: skip


@given(WORDS | st.none(), st.integers(20, 300), st.integers(3, 17))
def test_columns_always_fit_and_info_is_last(words: list[str] | None, across: int, time_width: int) -> None:
    columns = ListColumns() if words is None else ListColumns.of(words)
    shown = columns.fitting(across, {"Time": time_width})
    assert shown[-1].name == INFO
    assert MARKS_WIDTH + sum(column.width + 1 for column in shown) - 1 <= max(across, MARKS_WIDTH + 4)
    if words is not None:
        names = [word.partition("=")[0] for word in words]
        assert [column.name for column in shown[:-1]] == names[: len(shown) - 1]


@given(WORDS)
def test_a_choice_survives_being_written_as_text(words: list[str]) -> None:
    columns = ListColumns.of(words)
    again = columns.words()
    assert again is not None
    assert ListColumns.of(again) == columns


@cases("word", ["Nope", "API=1", "API=x", "API=", "topics.name", "API=1000"])
def test_an_unknown_column_is_reported(word: str) -> None:
    with pytest.raises(ValueError, match=word.partition("=")[0]):
        ListColumns.of([word])


@pytest.mark.long
@cases(
    "path", ["request.topics.name", "request.header.client_id", "response.body.error_code", "request.size",
             "response.responses.partitions.records.batches.records.value"],
)  # fmt: skip
def test_a_column_of_a_field_shows_what_show_fields_prints(path: str) -> None:
    with Capture([str(PCAPS / "java.pcapng")]) as capture:
        exchanges = list(capture.exchanges())
        printed = b"".join(exchange_lines([path], exchanges)).decode().split("\n")[:-1]
        cells = [path_cell(exchange, path) for exchange in exchanges]
        assert [cell[:20] for cell in cells] == [text[:20] for text in printed]
        assert len(set(cells)) > 1


async def _at(screen: Screen, name: str) -> ListColumn:
    await screen.settle()
    return next(column for column in screen.list.columns() if column.name == name)


@pytest.mark.long
async def test_the_menu_hides_shows_moves_and_widens_columns() -> None:
    async with opened(JAVA) as screen:
        shown = [column.name for column in screen.list.columns()]
        time = await _at(screen, "Time")
        await screen.pilot.press("C", "space")  # No.
        await screen.settle()
        assert [column.name for column in screen.list.columns()] == shown[1:]
        await screen.pilot.press("home", "down", "J", "plus", "plus")  # Time behind Conn
        await screen.settle()
        assert [column.name for column in screen.list.columns()][:2] == ["Conn", "Time"]
        assert (await _at(screen, "Time")).width == time.width + 2
        await screen.pilot.press("minus", "k", "j", "K")
        await screen.settle()
        assert [column.name for column in screen.list.columns()][:2] == ["Time", "Conn"]
        await screen.pilot.press("u", "escape")
        await screen.settle()
        assert [column.name for column in screen.list.columns()] == shown
        assert screen.main.appearance.columns.chosen is None


@pytest.mark.long
async def test_a_field_becomes_a_column() -> None:
    async with opened(JAVA, size=(160, 40)) as screen:
        screen.main.post_message(AddColumn("request.body.topics[3].name"))
        await screen.settle()
        assert "name" in screen.list.render_line(0).text
        name = "request.body.topics.name"
        wanted = [path_cell(screen.main.capture.exchange(n), name) for n in range(len(screen.main.capture))]
        assert any(wanted)
        assert cells_of(screen, name) == wanted[: len(cells_of(screen, name))]
        screen.main.post_message(AddColumn(name))
        await screen.settle()
        assert len(screen.list.columns()) == len({column.name for column in screen.list.columns()})


def test_indexed_columns_are_those_of_the_index() -> None:
    with Capture([JAVA]) as capture:
        list(capture.exchanges())
        indexed = [column for column in all_columns() if column.is_indexed]
        assert all(len(capture.index.columns([column.field], range(3))[0]) == 3 for column in indexed)


@cases("name", [name for name in ROW_FIELDS if name != "info"])
def test_any_name_of_a_row_field_is_a_column(name: str) -> None:
    heading = ROW_FIELDS[name].heading
    assert ListColumns.of([name, heading]).words() == [heading]
    assert heading in [column.name for column in all_columns()]


@pytest.mark.long
@pytest.mark.parametrize("known", [False, True])
async def test_columns_of_processes_are_offered_where_there_are_any(known: bool) -> None:
    async with opened(JAVA) as screen:
        if known:
            screen.main.capture.processes.add(ProcessNote("127.0.0.1:1", "127.0.0.1:2", 0, Process(7, "java")))
        await screen.press("C")
        menu = screen.pilot.app.screen.query_one(OptionList)
        names = {option.id for option in menu.options}
        assert ("Broker process" in names, "PID" in names) == (known, known)
        assert {"RTT", "Client host"} <= names


@cases(
    ("text", "width", "start", "shown"),
    [
        ("orders-billing-service-1[0,1] · 2 records", 41, 0, "orders-billing-service-1[0,1] · 2 records"),
        ("orders-billing-service-1[0,1] · 2 records", 40, 0, "orders-bill…g-service-1[0,1] · 2 records"),
        ("orders-billing-service-1[0,1] · 2 records", 33, 0, "orders-…ervice-1[0,1] · 2 records"),
        ("orders-billing-service-1[0,1] · 2 records", 9, 0, "orders-…ervice-1[0,1] · 2 records"),
        ("a-name-of-twenty-four-ch[0] a-name-of-18-chars", 40, 0, "a-name-o…y-four-ch[0] a-name-of-18-chars"),
        ("a-name-of-twenty-four-ch[0] a-name-of-18-chars", 1, 0, "a-name-…-four-ch[0] a-name-…18-chars"),
        ("sixteen-letters-[0] · 5 records", 5, 0, "sixteen-letters-[0] · 5 records"),
        ("[slow] set a.very.long.setting=value · a-name-of-18-chars", 55, 36,
         "[slow] set a.very.long.setting=value · a-name-…18-chars"),
        ("", 0, 0, ""),
    ],
)  # fmt: skip
def test_long_names_in_the_info_column_lose_their_middles(text: str, width: int, start: int, shown: str) -> None:
    assert with_elided_names(text, width, start) == shown


@cases(
    ("across", "needed", "width"),
    [(120, 11, 11), (120, 25, 18), (200, 11, 11), (200, 25, 25), (200, 37, 28), (157, 25, 18), (158, 25, 25)],
)
def test_the_column_of_apis_is_as_wide_as_the_names_that_the_capture_has(across: int, needed: int, width: int) -> None:
    [api] = [each for each in ListColumns().fitting(across, {"API": needed}) if each.name == "API"]
    assert api.width == width
    [chosen] = ListColumns.of(["API=20"]).fitting(across, {"API": needed})[:-1]
    assert chosen.width == 20, "the user's"


@pytest.mark.long
async def test_names_of_apis_are_measured_as_rows_come() -> None:
    async with opened(JAVA) as screen:
        longest = max(len(each.row.api) for each in screen.main.capture.exchanges())
        [api] = [each for each in screen.list.columns() if each.name == "API"]
        assert api.width == min(18, longest)
        assert screen.main.capture.index.apis(0, 2) == {18, 3}
        assert screen.main.capture.index.apis(0, 0) == set()


@cases(
    ("name", "most", "shown"),
    [
        ("注文テーブル-consumer-12", 14, "注文テ…umer-12"),
        ("注文テーブル-consumer-12", 15, "注文テ…umer-12"),
        ("注文テーブル-consumer-12", 24, "注文テーブル-consumer-12"),
        ("consumer-注文テーブル", 12, "consu…ーブル"),
        ("études-consumer-1", 14, "études…sumer-1"),
    ],
)  # fmt: skip
def test_names_with_wide_characters_are_cut_by_the_cells_that_they_take(name: str, most: int, shown: str) -> None:
    assert elided(name, most) == shown
    assert cell_len(shown) <= most


@cases("field", ["client_id", "api"])
def test_a_cell_of_wide_characters_ends_with_an_ellipsis_where_it_is_cut(field: str) -> None:
    text = fitting("注文テーブル", ListColumn("name", 9, field))
    assert cell_len(text) == 9
    assert "…" in text

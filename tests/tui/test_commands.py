"""The command line: rows by number, commands of the palette, arguments, completion, mistakes."""

import json
from pathlib import Path

import pytest
from textual.widgets import Input, OptionList, Static

from tests.cases import cases
from tests.tui.main_driver import JAVA, Screen, opened
from tests.tui.shared_screens import SharedScreens
from tui.command_line import CommandError, LineCommand, completions, of_names, run_line
from tui.features.go_to import GoToFeature
from tui.screens.command_dialog import CommandDialog
from tui.screens.dialog import Menu
from tui.screens.help_screen import HelpScreen
from tui.screens.overview_screen import OverviewScreen
from tui.widgets.filter_bar import Offer


async def typed(screen: Screen, text: str, *more: str) -> None:
    """Type a command."""
    await screen.press("colon")
    screen.pilot.app.screen.query_one(Input).value = text
    await screen.settle()
    await screen.press(*(more or ("enter",)))


def offered(screen: Screen) -> list[str]:
    options = screen.pilot.app.screen.query_one(OptionList)
    return [str(option.prompt).split()[0] for option in options.options]


@pytest.mark.long
async def test_numbers_words_and_arguments_do_what_their_keys_do(tmp_path: Path) -> None:
    async with opened(JAVA) as screen:
        await screen.press("colon", "4", "2", "enter")
        assert screen.row == 41
        await typed(screen, "filter api == Fetch")
        assert "api == Fetch" in screen.text("#title") or screen.main.view.is_filtered
        shown = len(screen.main.view)
        assert 0 < shown < len(screen.main.capture)
        await screen.press("colon")
        screen.pilot.app.screen.query_one(Input).value = f"w {tmp_path / 'some.json'}"
        await screen.pilot.press("enter")
        await screen.until(lambda: isinstance(screen.pilot.app.screen, Menu))
        await screen.pilot.press("enter")  # unchanged
        await screen.settle()
        written = (tmp_path / "some.json").read_text().splitlines()
        assert [json.loads(line)["api"] for line in written] == ["Fetch"] * shown
        await typed(screen, "sort latency")
        assert screen.main.view.is_sorted
        await typed(screen, "column ip.addr")
        assert "IP" in [column.name for column in screen.list.columns()]
        await typed(screen, "theme kdissect-light")
        assert screen.pilot.app.theme == "kdissect-light"
        await typed(screen, "overview")
        assert isinstance(screen.pilot.app.screen, OverviewScreen)


@pytest.mark.long
async def test_a_place_that_is_typed_says_above_the_line_where_it_goes(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        places = screen.main.feature(GoToFeature)
        assert places.place_words("7") == "row 7 of 60"
        assert places.place_words("-2") == "2 rows up"
        assert places.place_words("0.5") == "the first row at or after 0.500000 s"
        here_ns = screen.main.capture.exchange(0).row.time_ns - screen.main.capture.start_ns
        assert places.place_words("+1s").endswith(f"after {(here_ns + 10**9) / 1e9:.6f} s")
        assert not any(places.place_words(text) for text in ("", "+", "99:99", "5x"))
        await screen.press("colon", "7")
        assert "goto 7  row 7 of 60" in screen.lines()
        await screen.press("enter")
        assert screen.row == 6


@pytest.mark.exhaustive
async def test_what_is_hidden_or_missing_is_said(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await typed(screen, "filter api == Fetch")
        await typed(screen, "1")
        assert not screen.main.go_to(0)
        await typed(screen, "999999")
        said = screen.notifications()
        assert any("hidden by the filter" in words for words in said)
        assert any("there is no row 999,999" in words for words in said)


@pytest.mark.exhaustive
async def test_words_are_completed_and_so_are_their_arguments(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("colon", *"he")
        assert "help" in offered(screen)
        await screen.press("tab", "enter")
        assert isinstance(screen.pilot.app.screen, HelpScreen)
        await screen.press("escape")
        await typed(screen, "filter api == Fet", "tab")
        assert screen.pilot.app.screen.query_one(Input).value == "filter api == Fetch"


@pytest.mark.long
async def test_a_mistake_stays_in_the_line_with_what_is_wrong(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await typed(screen, "overvew")
        dialog = screen.pilot.app.screen
        assert isinstance(dialog, CommandDialog)
        assert dialog.query_one("#command", Input).value == "overvew"
        assert "overview" in str(dialog.query_one("#command-error", Static).render())
        await screen.press("escape")
        assert screen.pilot.app.screen is screen.main


def command(name: str, argument: str = "", *, needs: bool = False) -> tuple[LineCommand, list[str]]:
    ran: list[str] = []
    found = LineCommand(name, "words", ran.append, argument, of_names(lambda: [("Conn", ""), ("API", "")]), needs)
    return found, ran


@cases(
    ("text", "words"),
    [
        ("colum", "column needs NAME"), ("columns", "unknown command 'columns'; did you mean column"),
        ("other x", "other takes no argument, not 'x'"), ("\x1b[2J", "unknown command"),
    ],
)  # fmt: skip
def test_mistakes_are_one_plain_line(text: str, words: str) -> None:
    commands = [command("column", "NAME", needs=True)[0], command("other")[0]]
    with pytest.raises(CommandError) as caught:
        run_line(commands, text, lambda _: False)
    assert str(caught.value).startswith(words)
    assert str(caught.value).isprintable()


def test_a_beginning_that_one_command_has_is_enough() -> None:
    column, ran = command("column", "NAME", needs=True)
    run_line([column, command("other")[0]], " col  Conn ", lambda _: False)
    run_line([column], "   ", lambda _: False)
    assert ran == ["Conn"]


def test_an_argument_is_completed_behind_its_command() -> None:
    commands = [command("column", "NAME")[0]]
    [offer] = completions(commands, no_place, "column co", 9)
    assert ("column co"[: offer.start] + offer.text) == "column Conn"
    assert completions(commands, no_place, "12", 2) == []
    assert [each.text for each in completions(commands, no_place, "col", 3)] == ["column "]


def no_place(_text: str) -> str:
    return ""


def test_a_place_that_is_typed_says_where_it_goes() -> None:
    [offer] = completions([], lambda text: f"row {text} of 60", "12", 2)
    assert offer == Offer(0, 2, "goto 12", "row 12 of 60")

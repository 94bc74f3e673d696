"""The application around the screen: configuration, keys, recent captures, the palette."""

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.command import CommandPalette, Hit
from textual.pilot import Pilot

from dissector.capture import CaptureError
from dissector.capture_session import Capture
from tests.conftest import PCAPS
from tests.tui.main_driver import JAVA, Screen, opened
from tests.tui.shared_screens import SharedScreens
from tests.tui.test_settings import written
from tui.app import KDissectApp
from tui.feature import FIRST, ORDER
from tui.palette import Palette, naming
from tui.recents import FILES, FILTERS, recent, remember, remember_capture
from tui.row_colors import ColorBy
from tui.screens.dialog import Menu
from tui.screens.help_screen import MARKS, START, HelpScreen, found_keys, keys_of
from tui.screens.main_screen import MainScreen
from tui.settings import path
from tui.time_format import TimeFormat


@pytest.mark.long
async def test_the_configuration_is_applied() -> None:
    written('theme = "nord"\ncolors = "api"\ntime = "epoch"\ncolumns = ["API", "No."]\n[keys]\n"main.flip" = "R,f9"\n')
    async with opened(JAVA) as screen:
        assert screen.pilot.app.theme == "nord"
        appearance = screen.main.appearance
        assert (appearance.color_by, appearance.time) == (ColorBy.API, TimeFormat.EPOCH)
        assert [column.name for column in screen.list.columns()] == ["API", "No.", "Info"]
        assert "produce" in screen.text("#legend")
        await screen.press("R")
        assert screen.main.model.side == "response"
        await screen.press("f9")
        assert screen.main.model.side == "request"
        await screen.press("r")
        assert screen.main.model.side == "request"
        help_lines = [line for lines in keys_of(screen.main).values() for line in lines]
        assert ("R f9", "Show the other message of the exchange") in help_lines
        assert not screen.notifications()


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('theme = "no such"', "unknown theme 'no such'"),
        pytest.param('[keys]\n"main.flop" = "R"', "unknown key id 'main.flop'", marks=pytest.mark.exhaustive),
        pytest.param("theme = ", "config.toml", marks=pytest.mark.exhaustive),
        ('columns = ["[/nope]"]', "[/nope]"),
    ],
)
async def test_an_invalid_configuration_is_reported_in_one_line_and_ignored(text: str, words: str) -> None:
    written(text)
    async with opened(JAVA) as screen:
        [notification] = screen.notifications()
        assert words in notification
        assert "\n" not in notification
        assert screen.pilot.app.theme == "kdissect"
        assert "ApiVersions" in screen.lines()


@pytest.mark.long
async def test_choices_on_the_screen_are_remembered() -> None:
    async with opened(JAVA) as screen:
        await screen.press("v", "t")
        await screen.pilot.press("C", "space", "escape")
        screen.pilot.app.theme = "kdissect-light"
        await screen.settle()
        shown = [column.name for column in screen.list.columns()]
    async with opened(JAVA) as screen:
        appearance = screen.main.appearance
        assert (appearance.color_by, appearance.time) == (ColorBy.API, TimeFormat.PREVIOUS)
        assert [column.name for column in screen.list.columns()] == shown
        assert screen.pilot.app.theme == "kdissect-light"


@pytest.mark.long
async def test_without_a_choice_nothing_is_written() -> None:
    async with opened(JAVA) as screen:
        await screen.press("j", "e", "m")
    assert not path().exists()


@pytest.mark.long
async def test_a_preference_that_cannot_be_saved_is_reported(folders: Path) -> None:
    async with opened(JAVA) as screen:
        folders.mkdir(exist_ok=True)
        (folders / "config").write_text("")
        await screen.press("v")
        assert "preference not saved" in "\n".join(screen.notifications())


@pytest.mark.exhaustive
async def test_help_is_in_groups_in_two_columns_where_there_is_room_and_closes() -> None:
    async with opened(JAVA, size=(80, 24)) as screen:
        for size, columns in [((80, 24), 1), ((160, 50), 2)]:
            await screen.resize(size)
            await screen.press("question_mark")
            assert isinstance(screen.pilot.app.screen, HelpScreen)
            [first, *_] = [line for line in screen.lines().splitlines() if START in line]
            titles = set(keys_of(screen.main)) - {START}
            assert any(title in first for title in titles) == (columns == 2)
            await screen.press("escape")
            assert isinstance(screen.pilot.app.screen, MainScreen)


@pytest.mark.long
async def test_help_begins_with_the_ten_keys_that_matter_and_has_each_key_once(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        keys = keys_of(screen.main)
        assert next(iter(keys)) == START
        assert FIRST[-2:] == ("main.faults", "main.held")  # of a proxy
        assert len(keys[START]) == len(FIRST[:-2]) == 10
        assert [group for group in keys if group in ORDER] == [group for group in ORDER if group in keys]
        every = [key for title, lines in keys.items() if title != MARKS for shown, _ in lines for key in shown.split()]
        assert len(every) == len(set(every))


@pytest.mark.long
async def test_the_palette_is_grouped_and_names_no_key_twice(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        titles = [command.title for command in screen.pilot.app.get_system_commands(screen.main)]
        groups = [title.partition(": ")[0] for title in titles]
        assert [group for group in dict.fromkeys(groups) if group in ORDER] == [g for g in ORDER if g in groups]
        every = [key for title in titles for found in re.findall(r" \(([^()]+)\)$", title) for key in found.split()]
        assert len(every) > 40
        assert len(every) == len(set(every))


@pytest.mark.long
async def test_the_footer_is_cut_at_a_key_and_never_in_one() -> None:
    async with opened(JAVA, size=(60, 20)) as screen:
        for width in (60, 71, 80, 97, 120):
            await screen.resize((width, 24))
            shown = screen.lines().splitlines()[-1]
            names = [binding.description for _, binding, _, _ in screen.main.active_bindings.values() if binding.show]
            there = [name for name in names if name in shown]
            rest = shown
            for name in there:
                rest = rest.replace(name, "", 1)
            assert there
            assert all(len(word) <= 5 for word in rest.split()), shown
            assert shown.split()[1] == "Help"


@asynccontextmanager
async def palette(screen: Screen, text: str) -> AsyncIterator[Pilot[None]]:
    await screen.pilot.press("ctrl+p")
    await screen.pilot.pause()
    assert isinstance(screen.pilot.app.screen, CommandPalette)
    for character in text:
        await screen.pilot.press("space" if character == " " else character)
    await screen.until(lambda: text.split()[-1] in screen.lines().split("─")[0] or text in screen.lines())
    yield screen.pilot
    await screen.settle()


@pytest.mark.exhaustive
async def test_the_palette_offers_recent_filters_whatever_characters_they_have() -> None:
    remember(FILTERS, 'client_id == "[/nope]\x1b[31m"')
    remember(FILTERS, "api == Fetch")
    async with opened(JAVA) as screen:
        async with palette(screen, "nope") as pilot:
            await pilot.press("escape")
        async with palette(screen, "api == Fetch") as pilot:
            await pilot.press("enter")
            await pilot.press("enter")
            await screen.until(lambda: not isinstance(pilot.app.screen, CommandPalette))
        await screen.until(lambda: "api == Fetch" in screen.lines())


PALETTE = {
    "diagram": "Sequence (D)", "dia": "Sequence (D)", "fil": "Filter (/)", "next slow": "Next slow (s)",
    "decoded text": "Text (V)", "nxer": "Next error (e)",
}  # fmt: skip


@pytest.mark.long
async def test_the_palette_finds_words_before_letters_and_what_a_command_does() -> None:
    async with opened(JAVA) as screen:
        for typed, first in PALETTE.items():
            found = [hit async for hit in Palette(screen.main).search(typed)]
            assert isinstance(best := max(found, key=lambda hit: hit.score), Hit)
            assert first in str(best.text), typed


async def test_the_palette_shows_and_hides_columns(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        shown = [column.name for column in screen.list.columns()]
        screen.main.list_appearance.toggle_column("Client")
        assert [column.name for column in screen.list.columns()] == [name for name in shown if name != "Client"]
        screen.main.list_appearance.toggle_column("Corr")
        assert "Corr" in [column.name for column in screen.list.columns()]
        names = [command.title for command in screen.pilot.app.get_system_commands(screen.main)]
        assert "Column: Corr" in names
        assert any("theme" in name.lower() for name in names)


@pytest.mark.long
async def test_without_a_file_recent_captures_are_offered(tmp_path: Path) -> None:
    copy = tmp_path / "[bold]copy.pcapng"
    shutil.copy(JAVA, copy)
    for name in (JAVA, str(copy)):
        remember(FILES, name)
    async with KDissectApp().run_test(size=(100, 30)) as pilot:
        screen = Screen(pilot)
        await pilot.pause()
        assert isinstance(pilot.app.screen, Menu)
        assert "[bold]copy.pcapng" in screen.lines()
        await pilot.press("down", "enter")
        await pilot.pause()
        await screen.settle()
        assert isinstance(pilot.app.screen, MainScreen)
        assert "60 exchanges" in screen.text("#title")
        assert recent(FILES)[0] == JAVA
        app = pilot.app
        assert isinstance(app, KDissectApp)
        assert app.open_files([str(copy)])
        await pilot.pause()
        await screen.settle()
        assert "copy.pcapng" in screen.text("#title")
        assert not app.open_files([str(tmp_path / "none")])
        await screen.settle()
        assert "copy.pcapng" in screen.text("#title")


@pytest.mark.exhaustive
async def test_captures_that_were_opened_together_are_offered_together() -> None:
    remember_capture([JAVA, str(PCAPS / "librdkafka.pcapng")])
    async with KDissectApp().run_test(size=(100, 30)) as pilot:
        screen = Screen(pilot)
        await pilot.pause()
        assert "java.pcapng, librdkafka.pcapng" in screen.lines()
        await pilot.press("enter")
        await pilot.pause()
        await screen.settle()
        assert "java.pcapng, librdkafka.pcapng" in screen.text("#title")


async def test_escape_in_the_menu_of_recent_captures_ends_the_program() -> None:
    remember(FILES, JAVA)
    app = KDissectApp()
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
    assert app.return_code == 0


async def test_a_recent_capture_that_is_none_any_more_ends_the_program_with_an_error(tmp_path: Path) -> None:
    path = tmp_path / "words"
    path.write_text("words, and more words")
    remember(FILES, str(path))
    app = KDissectApp(None, lambda paths: Capture(paths))
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
    assert isinstance(app.error, CaptureError)
    assert "words" in str(app.error)


@pytest.mark.long
async def test_our_themes_come_first_and_those_of_textual_behind_a_choice() -> None:
    async with opened(JAVA) as screen:
        app = screen.pilot.app
        app.action_change_theme()
        await screen.settle()
        assert isinstance(app.screen, Menu)
        assert "nord" not in screen.lines()
        await screen.press("down", "enter")
        assert app.theme == "kdissect-light"
        app.action_change_theme()
        await screen.settle()
        await screen.press("o", "enter")
        await screen.until(lambda: isinstance(app.screen, CommandPalette))
        await screen.pilot.press(*"nord")
        await screen.until(lambda: "nord" in screen.lines())


@pytest.mark.long
async def test_typing_in_the_help_finds_keys_and_escape_shows_all_again() -> None:
    async with opened(JAVA, size=(80, 24)) as screen:
        await screen.press("question_mark", *"sequence")
        assert "Keys: sequence" in screen.lines()
        assert "D" in screen.lines()
        assert "Start with these" not in screen.lines()
        await screen.press(*"qjk")  # letters now
        assert isinstance(screen.pilot.app.screen, HelpScreen)
        assert "no key matches" in screen.lines()
        await screen.press("backspace", "backspace", "backspace")
        assert "Sequence diagram" in screen.lines()
        await screen.press("escape")
        assert "Start with these" in screen.lines()
        await screen.press("slash", "q")
        assert "Keys: q" in screen.lines()
        assert "Quit kdissect" in screen.lines()
        await screen.press("escape", "escape")
        assert isinstance(screen.pilot.app.screen, MainScreen)
        await screen.press("question_mark", "j", "q")
        assert isinstance(screen.pilot.app.screen, MainScreen)


def test_keys_are_found_by_all_words_of_a_line_or_by_the_key_itself() -> None:
    keys = {"Go": [("e", "Next error"), ("s", "Next slow one")], "List": [("z", "Sort, slow ones first")]}
    assert found_keys(keys, "") == keys
    assert found_keys(keys, "SLOW next") == {"Go": [("s", "Next slow one")]}
    assert found_keys(keys, "go slow") == {"Go": [("s", "Next slow one")]}
    assert found_keys(keys, "z") == {"List": keys["List"]}
    assert found_keys(keys, "nothing") == {}


@pytest.mark.parametrize(
    ("title", "typed", "rank"),
    [
        ("List: Sort (z)", "sort", 3), ("List: Sort order (z)", "sort", 2), ("List: Next sort (z)", "sort", 1),
        ("List: Unsorted (z)", "sort", 0), ("Filter: sort == 1", "sort", 2), ("Records", "records", 3),
        ("List: Resort (sort)", "sort", 0),
    ],
)  # fmt: skip
def test_the_palette_ranks_what_a_word_names_before_what_contains_it(title: str, typed: str, rank: int) -> None:
    assert naming(title, [typed]) == rank


@pytest.mark.long
async def test_what_a_command_of_the_palette_does_ends_with_an_ellipsis_where_it_is_cut() -> None:
    async with opened(JAVA, size=(80, 24)) as screen:
        await screen.press("ctrl+p", *"graph")
        await screen.until(lambda: "IO graph: exchanges" in screen.lines())
        [line] = [line for line in screen.lines().splitlines() if "IO graph: exchanges" in line]
        assert line.rstrip().endswith("…")

"""Keys and clicks that come faster than the screen responds do what they do when they come slowly."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual import events
from textual.app import SystemCommand
from textual.command import CommandList
from textual.widgets import Input, OptionList

from tests.tui import textual_for_tests
from tests.tui.main_driver import JAVA, Screen, opened
from tui.app import KDissectApp
from tui.screens.dialog import Choice, Menu, Prompt
from tui.typeahead import LONGEST
from tui.widgets.filter_bar import FilterBar

NAMES = {"/": "slash", "?": "question_mark", "*": "asterisk", "[": "left_square_bracket", "\\": "backslash",
         "]": "right_square_bracket", "=": "equals_sign", "+": "plus", "-": "minus", " ": "space"}  # fmt: skip
AT_ONCE = ("/", "?", "o", "L", "C", "x", "y", "f", "escape", "enter", "j", "k", "G", "g", "z", "a", "=")
"""Keys with an immediate effect. That of others, such as searches, comes later."""
KEYS = (*AT_ONCE, "ctrl+p", "ctrl+f", "tab", "down", "up", *"tTvcmsFeE[]nNPbuwlrpihd\\+-* ")
CELLS = st.tuples(st.integers(0, 119), st.integers(0, 39))
FEW = max(2, settings().max_examples // 30)
"""Examples: each opens a screen."""


def type_at_once(screen: Screen, *done: str | tuple[int, int]) -> None:
    """Press keys, and click at cells, before any of it is handled."""
    app = screen.pilot.app
    for each in done:
        if isinstance(each, str):
            app.post_message(events.Key(NAMES.get(each, each), each if len(each) == 1 else None))
            continue
        for kind in (events.MouseDown, events.MouseUp):
            x, y = each
            app.post_message(kind(None, x, y, 0, 0, 1, False, False, False, x, y))


async def handled(screen: Screen) -> None:
    """Wait until all input is handled; a worker may still wait for the user."""
    app = screen.pilot.app
    assert isinstance(app, KDissectApp)
    await screen.until(lambda: app.is_at_rest)
    await screen.pilot.pause()


def place(screen: Screen) -> tuple[Any, ...]:
    """Where the user is."""
    app = screen.pilot.app
    screens = [type(each).__name__ for each in app.screen_stack]
    typed = [each.value for each in app.screen.query(Input)]
    return screens, type(app.focused).__name__, screen.main.query_one(FilterBar).text, typed, screen.row


@pytest.mark.long
@pytest.mark.slow
@given(st.lists(st.sampled_from(AT_ONCE), min_size=2, max_size=6))
@settings(max_examples=FEW)
async def test_keys_typed_at_once_do_what_they_do_slowly(keys: Sequence[str]) -> None:
    async with opened(JAVA) as screen:
        for key in keys:
            type_at_once(screen, key)
            await handled(screen)
        wanted = place(screen)
    async with opened(JAVA) as screen:
        type_at_once(screen, *keys)
        await handled(screen)
        await screen.until(lambda: place(screen) == wanted)


@pytest.mark.long
@pytest.mark.slow
@given(st.lists(st.lists(st.sampled_from(KEYS) | CELLS, max_size=6), max_size=8))
@settings(max_examples=FEW)
async def test_no_keys_and_clicks_crash_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaths: Sequence[Sequence[str | tuple[int, int]]]
) -> None:
    monkeypatch.chdir(tmp_path)  # what they write
    with textual_for_tests.drawn_after_each_change():
        async with opened(JAVA) as screen:
            for breath in breaths:
                type_at_once(screen, *breath)
                await asyncio.sleep(0.02 * len(breath))
            await handled(screen)
            assert screen.main.is_attached


@pytest.mark.long
async def test_a_filter_is_typed_at_once() -> None:
    async with opened(JAVA) as screen:
        type_at_once(screen, *"/api == Fetch", "enter")
        await handled(screen)
        await screen.until(lambda: screen.main.query_one(FilterBar).text == "api == Fetch")
        assert screen.main.view.is_filtered


@pytest.mark.long
async def test_a_key_that_is_held_counts_each_time() -> None:
    async with opened(JAVA) as screen:
        type_at_once(screen, *"j" * 30, "k", *"jjj")
        await handled(screen)
        await screen.until(lambda: screen.row == 32)


@pytest.mark.long
async def test_pasted_text_keeps_its_place_among_keys() -> None:
    async with opened(JAVA) as screen:
        type_at_once(screen, "/", "a")
        screen.pilot.app.post_message(events.Paste("pi == "))
        type_at_once(screen, *"Fetch", "enter")
        await handled(screen)
        await screen.until(lambda: screen.main.query_one(FilterBar).text == "api == Fetch")


async def test_a_choice_that_is_clicked_twice_is_made_once() -> None:
    async with opened(JAVA) as screen:
        chosen: list[int | None] = []
        screen.pilot.app.push_screen(Menu("Choose", [Choice("this"), Choice("that")]), chosen.append)
        await screen.settle()
        region = screen.pilot.app.screen.query_one(OptionList).content_region
        type_at_once(screen, *[(region.x + 1, region.y + 1)] * 3)
        await handled(screen)
        await screen.settle()
        assert chosen == [1]
        assert screen.pilot.app.screen is screen.main


@pytest.mark.exhaustive
async def test_a_line_that_is_entered_twice_is_returned_once() -> None:
    async with opened(JAVA) as screen:
        given: list[str | None] = []
        screen.pilot.app.push_screen(Prompt("Name", "it"), given.append)
        await screen.settle()
        line = screen.pilot.app.screen.query_one(Input)
        for _ in range(2):
            line.post_message(Input.Submitted(line, line.value))
        await screen.settle()
        assert given == ["it"]
        assert screen.pilot.app.screen is screen.main


@pytest.mark.exhaustive
async def test_a_command_that_is_clicked_twice_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[int] = []
    ours = SystemCommand("Ours", "", lambda: run.append(1))
    monkeypatch.setattr(KDissectApp, "get_system_commands", lambda app, screen: [ours])
    async with opened(JAVA) as screen:
        app = screen.pilot.app
        await screen.press("ctrl+p")
        commands = app.screen.query_one(CommandList)
        await screen.until(lambda: commands.option_count)
        await screen.settle()
        region = commands.content_region
        type_at_once(screen, *[(region.x + 1, region.y)] * 3)
        await handled(screen)
        await screen.until(lambda: run)
        await screen.settle()
        assert run == [1]
        assert app.screen is screen.main


@pytest.mark.long
async def test_a_key_that_hangs_delays_the_next_one_only_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(JAVA) as screen:
        released = asyncio.Event()

        async def hang() -> None:
            await released.wait()

        screen.list.call_later(hang)
        type_at_once(screen, "j", "ctrl+q")
        began = asyncio.get_running_loop().time()
        while screen.pilot.app.is_running and not screen.pilot.app._exit:
            await asyncio.sleep(0.05)
        assert asyncio.get_running_loop().time() - began < 10 * LONGEST
        released.set()

"""Applications that tests share: to open one takes as long as ten keys.

Invariants:
  * a test finds its screen as it is when just opened: what is drawn, each style of it, and what features, model, list
    and panes know. What a test leaves otherwise, and can't be put back, is closed, and so is what a test fails on: the
    next one opens another;
  * each test has its own name and its own failure, in whatever order they run.

A test asks for `shared`, and runs in the event loop of its module. What starts anew, such as settings, sizes and
captures that change, is opened with `main_driver.opened`.
"""

import asyncio
import functools
import inspect
import re
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from types import NoneType
from typing import Any, Final, NamedTuple

from textual.strip import Strip
from textual.widget import Widget

from tests.tui import textual_for_tests
from tests.tui.main_driver import Screen, opened
from tui.app import KDissectApp
from tui.features.sort import SortFeature
from tui.screens.main_screen import MainScreen

MOST_SCREENS: Final = 8
"""Escapes until the main screen is in front again."""
PLAIN: Final = (str, bytes, int, float, tuple, NoneType, range, Enum)
"""Types of what is put back of a widget."""


class Begin(NamedTuple):
    """A screen as it was opened."""

    drawn: list[Strip]
    known: list[tuple[object, dict[str, Any]]]
    """Objects behind the screen and their attributes, containers copied."""


class Kept:
    """An application that runs until it is closed, and its main screen as it was opened."""

    def __init__(self, path: str) -> None:
        self._end = asyncio.Event()
        self._opened: asyncio.Future[Screen] = asyncio.get_running_loop().create_future()
        self._run = asyncio.create_task(self._open(path))
        self._begin: Begin | None = None

    async def _open(self, path: str) -> None:
        """Open and close it in one task, as contexts of Textual want it."""
        async with opened(path) as screen:
            self._opened.set_result(screen)
            await self._end.wait()

    async def screen(self) -> Screen:
        """Return the screen, once it is open."""
        await asyncio.wait([self._run, self._opened], return_when=asyncio.FIRST_COMPLETED)
        if not self._opened.done():
            await self._run
        return await self._opened

    def begin(self, screen: Screen) -> None:
        """Remember the screen as it was opened."""
        if self._begin is None:
            self._begin = Begin(_drawn(screen), [(each, _attributes(each)) for each in _behind(screen)])

    async def is_restored(self) -> bool:
        """Put back what a test changed; return whether all is as it was."""
        screen, begin = await self.screen(), self._begin
        assert begin is not None
        app = screen.pilot.app
        if not app.is_running or app._exception is not None or self._run.done():
            return False
        for _ in range(MOST_SCREENS):
            if isinstance(app.screen, MainScreen):
                break
            await screen.press("escape")
        main = screen.main
        if app.screen_stack[1:] != [main]:
            return False
        main.filter.apply("")
        main.feature(SortFeature).sort_by(None)
        main.list_appearance.choose_columns(None)
        main.query_one("#list", Widget).focus()
        screen.fields.cursor_line = -1
        await screen.press("G", "g")  # another row and back: no field is selected
        for each, attributes in begin.known:
            _put_back(each, attributes)
        for timer in [timer for each in main.walk_children(Widget, with_self=True) for timer in each._timers]:
            if timer._repeat == 0:  # what would come in the next test
                timer.stop()
        app.clear_notifications()
        app._notifications.__dict__.pop(textual_for_tests.POSTED, None)
        app._clipboard = ""
        screen.list.update_rows()
        await screen.settle()
        return _drawn(screen) == begin.drawn and [*map(id, _behind(screen))] == [id(each) for each, _ in begin.known]

    async def close(self) -> None:
        self._end.set()
        await self._run


class SharedScreens:
    """Screens on captures, one at a time of each."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}

    @asynccontextmanager
    async def opened(self, path: str) -> AsyncIterator[Screen]:
        """Give a screen on a capture, 120 columns wide and 40 lines high, as it is when just opened."""
        kept = self._kept.pop(path, None) or Kept(path)
        screen = await kept.screen()
        is_restored = False
        try:
            with screen.pilot.app._context():
                kept.begin(screen)
                yield screen
                is_restored = await kept.is_restored()
        finally:
            if is_restored:
                self._kept[path] = kept
            else:
                await kept.close()

    async def close(self) -> None:
        for kept in self._kept.values():
            await kept.close()


def _drawn(screen: Screen) -> list[Strip]:
    return screen.pilot.app.screen._compositor.render_strips()


def _behind(screen: Screen) -> list[object]:
    """The objects that know what the user did, but for the model: that follows the cursor."""
    main, app = screen.main, screen.pilot.app
    assert isinstance(app, KDissectApp)
    widgets = [each for each in main.walk_children(Widget) if type(each).__module__.startswith("tui.")]
    return [main, main.history, app._settings, main.appearance, main.appearance.marks, *main.features, *widgets]


def _attributes(known: object) -> dict[str, Any]:
    """An object's attributes, containers copied; of a widget those that our classes set, and hold words and numbers."""
    if not isinstance(known, Widget):
        return {name: _copied(value) for name, value in vars(known).items()}
    return {name: value for name in _set_by_us(type(known)) if isinstance(value := getattr(known, name, None), PLAIN)}


@functools.cache
def _set_by_us(kind: type[Widget]) -> frozenset[str]:
    ours = [each for each in kind.__mro__ if each.__module__.startswith("tui.")]
    named = {name for each in ours for name in re.findall(r"self\.(\w+)(?:: [^=\n]+)? = ", inspect.getsource(each))}
    return frozenset(name for name in named if not hasattr(kind, name) or isinstance(getattr(kind, name), PLAIN))


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, (list, dict, set, deque)) else value


def _put_back(known: object, attributes: dict[str, Any]) -> None:
    if isinstance(known, Widget):
        for name, value in attributes.items():
            setattr(known, name, value)
    else:
        vars(known).clear()
        vars(known).update({name: _copied(value) for name, value in attributes.items()})

"""Textual as our tests run it: with the same results, in less than half of the CPU.

* Its pilot waits until the process is idle by the clock, and sends a message to each widget at each wait. Here it
  waits until the event loop has nothing to run and the screen nothing to lay out: however fast the machine is.
* It draws after each change. Here a screen is laid out after each, when the event loop has nothing to run, and drawn
  where a test looks, when the application ends, and when the first of its class comes to the front, at each size. What
  writes to a terminal, and what has random keys (`drawn_after_each_change`), is drawn each time.
* It parses its style sheets for each application. Here all share what is parsed.
* It looks through all classes of a widget for each message. Here it is kept which messages a class does not handle.
* It reads the signature of each function that it calls later. Here a function's code is asked.
* Notifications expire by the clock. Here all that were ever posted are kept, for `Driven.notifications`.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import FunctionType
from typing import Any

import textual._callback
import textual.app
import textual.pilot
import textual.strip
from textual._context import active_app
from textual.app import App, ScreenStackError
from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.message import Message
from textual.message_pump import MessagePump
from textual.notifications import Notification, Notifications
from textual.pilot import Pilot
from textual.screen import Screen

from tui.typeahead import TypeAhead

POSTED = "posted"
"""The attribute of an application's notifications with all of them, expired or not."""
_parsed: dict[frozenset[tuple[str, str]], LRUCache[tuple[Any, ...], Any]] = {}
"""Parsed style sheets by the variables that they were parsed with."""
_drawn: set[tuple[type, object]] = set()
"""Classes of screens that were drawn when one of them came to the front, each with its size then."""
_is_handled: dict[tuple[type, str, type], bool] = {}
"""Whether a class may handle a message: by the name of the handler and the message's class."""


async def idle(app: App[Any]) -> None:
    """Wait until all messages are handled and all is laid out, and drawn if it is to be. Threads and timers are not
    waited for."""
    loop: Any = asyncio.get_running_loop()
    ready = loop._ready
    quiet = 0
    while quiet < 2:
        await asyncio.sleep(0)
        if ready:
            quiet = 0
        elif isinstance(app, TypeAhead) and app.is_running and not app.is_at_rest:
            await asyncio.sleep(0.001)  # it waits for a widget that waits for something
        elif _draws(app):
            quiet = 0
        else:
            quiet += 1


def _draws(app: App[Any]) -> bool:
    """Lay out, or draw, what waits for the next frame; return whether there was something."""
    if app._resize_timer is not None:
        app._check_resize()
        return True
    try:
        screen = app.screen
    except ScreenStackError:  # it ended
        return False
    waiting = (
        screen._layout_required, screen._scroll_required, screen._repaint_required, screen._recompose_required,
        screen._dirty_widgets, screen._callbacks,
    )  # fmt: skip
    if not screen.is_current or app._batch_count:
        return False
    if any(waiting):
        screen._on_timer_update()
    elif screen._compositor._dirty_regions and (
        _is_drawn_each_time or not app.is_headless or (type(screen), screen.size) not in _drawn
    ):
        _drawn.add((type(screen), screen.size))
        _original_compositor_refresh(screen)
    else:
        return False
    return True


@contextmanager
def drawn_after_each_change() -> Iterator[None]:
    """Draw as users see it: all that may stand on the screen for a moment."""
    global _is_drawn_each_time
    _is_drawn_each_time = True
    try:
        yield
    finally:
        _is_drawn_each_time = False


def _draw_when_idle(screen: Screen[Any]) -> None:
    """Keep the regions that changed for `_draws`, or for who looks at them."""
    if screen is screen.app.screen and not screen.app.is_inline:
        screen._dirty_widgets.clear()
    else:
        _original_compositor_refresh(screen)


async def _shutdown(app: App[Any]) -> None:
    """Draw the last state, in which an error fails the test as well."""
    if app.is_headless and app._exception is None and app._screen_stack and app.screen.is_running:
        await idle(app)
        if app._screen_stack and app.screen._compositor._dirty_regions:
            _original_compositor_refresh(app.screen)
    await _original_shutdown(app)


async def _wait_for_idle(*_: float) -> None:
    await idle(active_app.get())


async def _wait_for_screen(pilot: Pilot[Any], timeout: float = 0) -> bool:
    await idle(pilot.app)
    return True


def _share_parsed(sheet: Stylesheet, variables: dict[str, str]) -> None:
    """Let a style sheet share the cache of all those with the same variables."""
    sheet._parse_cache = _parsed.setdefault(frozenset(variables.items()), LRUCache(1024))


def _set_variables(sheet: Stylesheet, variables: dict[str, str]) -> None:
    sheet._parse_cache = LRUCache(1)  # the shared one is not to be cleared
    _original_set_variables(sheet, variables)
    _share_parsed(sheet, variables)


def _init(sheet: Stylesheet, *, variables: dict[str, str] | None = None) -> None:
    _original_init(sheet, variables=variables)
    _share_parsed(sheet, sheet._variables)


def _add(notifications: Notifications, notification: Notification) -> Notifications:
    notifications.__dict__.setdefault(POSTED, []).append(notification)
    return _original_add(notifications, notification)


def _handlers(pump: MessagePump, name: str, message: Message) -> Iterable[tuple[type, Any]]:
    """Return the methods that handle a message."""
    kind = type(pump), name, type(message)
    if kind not in _is_handled:
        decorated = {each for cls in type(pump).__mro__ for each in cls.__dict__.get("_decorated_handlers") or ()}
        _is_handled[kind] = any(hasattr(type(pump), each) for each in (name, f"_{name}")) or not decorated.isdisjoint(
            type(message).__mro__
        )
    return _original_handlers(pump, name, message) if _is_handled[kind] else ()


def _count_parameters(function: Callable[..., Any]) -> int:
    """Count as `inspect.signature` does, which takes a hundred times as long."""
    if not isinstance(function, FunctionType) or function.__dict__:  # it may stand for another one
        return _original_count_parameters(function)
    code = function.__code__
    rest = bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    return code.co_argcount + code.co_kwonlyargcount + rest


_is_drawn_each_time = False
_original_compositor_refresh = Screen._compositor_refresh
_original_count_parameters = textual._callback._count_parameters
_original_shutdown = App._shutdown
_original_add = Notifications.add
_original_handlers = MessagePump._get_dispatch_methods
_original_init = Stylesheet.__init__
_original_set_variables = Stylesheet.set_variables


def install() -> None:
    """Let all applications of this process run like this."""
    textual.app.wait_for_idle = textual.pilot.wait_for_idle = _wait_for_idle
    Pilot._wait_for_screen = _wait_for_screen
    Screen._compositor_refresh = _draw_when_idle
    App._shutdown = _shutdown
    textual.strip.FIFOCache = lambda _: {}  # a strip of a line has seven, and most are never used
    Stylesheet.__init__ = _init
    Stylesheet.set_variables = _set_variables
    RuleSet.__hash__ = object.__hash__  # the same, natively: sets of rules are made for each widget that is styled
    MessagePump._get_dispatch_methods = _handlers
    textual._callback._count_parameters = _count_parameters
    Notifications.add = _add

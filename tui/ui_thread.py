"""Calls from a worker's thread to its screen."""

from collections.abc import Callable
from typing import ParamSpec

from textual.widget import Widget

Arguments = ParamSpec("Arguments")


def call_on_ui(
    screen: Widget, function: Callable[Arguments, object], /, *what: Arguments.args, **named: Arguments.kwargs
) -> None:
    """Call a function on the thread of the screen, and wait for it. A screen that was closed has lost its widgets while
    it is still attached: nothing is called then."""

    def call() -> None:
        if screen.app.is_running and screen.is_attached and screen.screen in screen.app.screen_stack:
            function(*what, **named)

    screen.app.call_from_thread(call)

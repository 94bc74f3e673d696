"""What a worker's thread has to tell its screen."""

from collections.abc import Callable
from typing import ParamSpec

from textual.widget import Widget

Arguments = ParamSpec("Arguments")


def call_on_ui(
    screen: Widget, hear: Callable[Arguments, object], /, *what: Arguments.args, **named: Arguments.kwargs
) -> None:
    """Let a screen hear it on its own thread, and wait until it has. A screen that was left has lost its parts while it
    is still attached: it is not told."""

    def told() -> None:
        if screen.app.is_running and screen.is_attached and screen.screen in screen.app.screen_stack:
            hear(*what, **named)

    screen.app.call_from_thread(told)

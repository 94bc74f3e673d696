"""The screen: whether the terminal can show it, where its keys come from, and where it is found.

It is found in one place and imported only when it is shown, as Textual takes longer to import than most commands take
to run: each function of `tui` stands here under its name, with its arguments, exit code and errors.
"""

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dissector.cli.errors import UsageError

if TYPE_CHECKING:
    from tui.recents import recent_captures
    from tui.run import run, run_diff, run_live, run_matrix

__all__ = ["STDIN", "is_terminal", "recent_captures", "run", "run_diff", "run_live", "run_matrix", "takes_screen"]

STDIN: Final = "-"
_DRIVER: Final = "TEXTUAL_DRIVER"
BROWSER: Final = {
    _DRIVER: "textual.drivers.web_driver:WebDriver",
    "TEXTUAL_COLOR_SYSTEM": "truecolor",
    "TERM": "xterm-256color",
}
"""Variables with which a process draws for a page of a browser, in place of a terminal."""
_TERMINAL: Final = "/dev/tty"
_KEYS: Final = 0
"""The descriptor that keys are read from."""


def is_terminal() -> bool:
    """Return whether a user sees and types: a page of a browser, or a terminal at both ends that can place what is
    drawn."""
    if os.environ.get(_DRIVER) == BROWSER[_DRIVER]:
        return True
    return sys.stdin is not None and sys.stdin.isatty() and _shows_screens()


def takes_screen(files: Sequence[str]) -> bool:
    """Return whether these captures can be opened on the screen. If one of them is standard input, keys come from the
    terminal itself from now on. Raises `UsageError` if standard input is the terminal."""
    if STDIN not in files:
        return is_terminal()
    if sys.stdin is not None and sys.stdin.isatty():
        raise UsageError("- is standard input, and nothing is piped into it: tcpdump -w - port 9092 | kdissect -")
    return _shows_screens() and _type_on_terminal()


def _shows_screens() -> bool:
    return sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _type_on_terminal() -> bool:
    """Read keys from the terminal, and `sys.stdin` from what is piped in; return whether there is a terminal."""
    try:
        terminal = os.open(_TERMINAL, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    piped = os.dup(_KEYS)
    os.dup2(terminal, _KEYS)
    os.close(terminal)
    sys.stdin = os.fdopen(piped, encoding="utf-8", errors="replace")
    return True


def __getattr__(name: str) -> object:
    if name == "recent_captures":
        from tui import recents

        return recents.recent_captures
    if name in __all__:
        gc.disable()
        import tui.run

        gc.freeze()  # modules stay: looking for cycles in them takes a thirtieth of the start
        gc.enable()
        return getattr(tui.run, name)
    raise AttributeError(name)

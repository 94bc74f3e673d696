"""Shows captures, comparisons or a live capture on the terminal until the user quits; gives exit codes.

It ends when its terminal is gone, as when ssh drops without a SIGHUP. Textual would go on: it reads the end of its
input again and again, and its main thread waits for output that nobody takes. It can't be asked to quit, so the process
ends as SIGHUP would end it. Nothing is lost: the user's files are written at once, and the capturing process ends by
itself when this one is gone.
"""

import curses
import os
import select
import signal
import sys
import threading
from collections.abc import Mapping, Sequence, Set
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from textual.constants import DRIVER

from dissector.analysis.diff import DiffSide, ManualMatches
from dissector.capture.live import Recording, RecordingSettings
from dissector.capture_session import Capture
from dissector.detection.decode_as import DecodeAs, of_ports
from dissector.proxy_server import ProxySettings
from tui.app import KDissectApp
from tui.recents import remember_capture
from tui.screens.diff_screen import DiffScreen
from tui.screens.live_screen import Begin, LiveScreen
from tui.screens.main_screen import MainScreen
from tui.screens.matrix_screen import MatrixScreen

if TYPE_CHECKING:
    from dissector.records.values.opener import ValueOpener

LEFT: Final = 128 + signal.SIGINT
"""The exit code of a comparison that the user did not wait for."""
GONE: Final = 128 + signal.SIGHUP
"""The exit code when the terminal is gone, as shells have it."""


def run(
    paths: Sequence[str],
    response_to: tuple[int, int] | None = None,
    *,
    ports: Set[int] = frozenset(),
    decode_as: Sequence[DecodeAs] = (),
    topics: Mapping[str, str] | None = None,
    key_logs: Sequence[str] = (),
    show_secrets: bool = False,
    resolves: bool = False,
    value_opener: "ValueOpener | None" = None,
    filter: str | None = None,
) -> int:
    """Open captures on the screen, or offer recent ones; return the exit code. `value_opener` opens keys and values of
    records, `filter` is a valid one to begin with. Raises `capture.CaptureError` before the terminal is taken, or after
    it is given back if a pipe turned out to be no capture."""
    _take_terminal()

    given = (*of_ports(ports), *decode_as)

    def opener(paths: Sequence[str], /, *, decode_as: Sequence[DecodeAs] = given) -> Capture:
        return Capture(
            paths, response_to=response_to, decode_as=decode_as, topics=topics, key_logs=key_logs,
            show_secrets=show_secrets, resolves=resolves, opener=value_opener,
        )  # fmt: skip

    with ExitStack() as opened:
        main = MainScreen(opened.enter_context(opener(paths))) if paths else None
        if main is not None:
            main.filter.first = filter or ""
            remember_capture(paths)
        app = KDissectApp(main, opener)
        _show(app)
        return app.return_code or 0


def run_diff(a: DiffSide, b: DiffSide, connections: ManualMatches = ()) -> int:
    """Show two sides next to each other; return the exit code: 0 if they are the same, 1 if they differ, 2 if there is
    nothing to compare, 130 if the user quit before the comparison was done. Raises `capture.CaptureError` if a pipe
    turned out to be no capture."""
    _take_terminal()
    screen = DiffScreen(a, b, connections)
    _show(KDissectApp(screen))
    found = screen.comparison
    if found is None:
        return LEFT
    return 2 if not (found.a.exchanges and found.b.exchanges) else 0 if found.is_same else 1


def run_matrix(sides: Sequence[DiffSide]) -> int:
    """Show what several sides do, next to each other; return the exit code: 0 if they do the same, 1 if not, 130 if the
    user quit before. Raises `capture.CaptureError` if a pipe turned out to be no capture."""
    _take_terminal()
    screen = MatrixScreen(sides)
    _show(KDissectApp(screen))
    return LEFT if screen.matrix is None else 0 if screen.matrix.is_same else 1


def run_live(capture: Capture, recording: Recording, wanted: RecordingSettings, begin: Begin) -> None:
    """Show a live capture, or a proxy, and those that the user starts after it, until the user quits."""
    from tui.screens.proxy_screen import ProxyScreen  # captures have no proxy

    _take_terminal()
    kind = ProxyScreen if isinstance(wanted, ProxySettings) and wanted.is_controlled else LiveScreen
    KDissectApp(kind(capture, recording, wanted, begin)).run()


def _show(app: KDissectApp) -> None:
    """Run the application until the user quits; raise the error that ended it."""
    app.run()
    if app.error is not None:
        raise app.error


def _take_terminal() -> None:
    """End with the terminal. One without colors gets none: nobody knows what it would make of them."""
    end_with_terminal()
    try:
        curses.setupterm(fd=sys.__stdout__.fileno() if sys.__stdout__ is not None else 1)
        colors = curses.tigetnum("colors")
    except (curses.error, OSError):  # nothing is known of the terminal
        return
    if colors < 2:
        os.environ["NO_COLOR"] = "1"


def end_with_terminal() -> None:
    """Watch standard input from now on, if it is a terminal, or the server of a page in a browser."""
    if sys.__stdin__ is not None and (sys.__stdin__.isatty() or DRIVER):
        threading.Thread(target=_watch, args=(sys.__stdin__.fileno(),), name="hangup", daemon=True).start()


def _watch(terminal: int) -> None:
    """Sleep until it hangs up."""
    poll = select.poll()
    poll.register(terminal, 0)  # no input: hang-ups are always reported
    if any(events & (select.POLLHUP | select.POLLERR) for _, events in poll.poll()):
        os._exit(GONE)

"""Pictures of every screen, kept beside the tests: drawn again, they must be the same.

One run of the program has a screen in all sizes and themes: what follows its terminal looks as if opened there.

`python -m tests.tui.pictures [NAME…]` draws them again and prints which differ from those kept; look at each of these
(`build/pictures/` has them as SVG) before you commit it.
"""

import asyncio
import gzip
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partialmethod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple
from unittest.mock import patch

from rich.console import Console
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input
from textual.worker import WorkerCancelled

from dissector.analysis.diff import DiffSide
from dissector.capture_session import Capture
from dissector.records.values.schemas import opener_with
from tests.conftest import PCAPS
from tests.tui import proxy_dialogs, textual_for_tests
from tui.app import KDissectApp
from tui.screens.diff_screen import DiffScreen
from tui.screens.main_screen import MainScreen
from tui.screens.matrix_screen import MatrixScreen

textual_for_tests.install()
KEPT: Final = Path(__file__).parent / "pictures"
DRAWN: Final = Path(__file__).parents[2] / "build" / "pictures"
Size = tuple[int, int]
Look = tuple[Size, str]
"""A size, and a theme."""
SIZES: Final[tuple[Size, ...]] = ((80, 24), (120, 40), (200, 60))
PATIENCE: Final = 20
"""Tenths of a second to wait for a picture that does not look as expected yet: on a slow machine it comes late."""
THEMES: Final = {"dark": "kdissect", "light": "kdissect-light"}
LOOKS: Final = (*((size, "dark") for size in SIZES), ((120, 40), "light"))
"""The pictures of a screen: a theme changes colors, and no size does."""
ALL_LOOKS: Final = ("main", "diff")
"""The pictures that `make test` draws in every look: together they have nearly all colors."""

DIFFERENT: Final = (
    *ALL_LOOKS, "field", "tls-record", "help", "completion", "columns", "export", "findings", "io-graph", "overview",
    "record", "timelines", "check", "matrix",
)  # fmt: skip
"""The pictures that `make test` and `make long` draw: each of them has something that no other has. What the others
show is in tests of their features as well."""


class Picture(NamedTuple):
    """A screen: the capture that is opened, or the two that are compared, and the keys that lead there."""

    name: str
    captures: tuple[str, ...]
    keys: str = ""
    follows: bool = True
    """False for what depends on the size at first: where a cursor lands, how far is scrolled, what is offered."""
    over: Callable[[], Screen[Any]] | None = None
    """Makes a screen that is opened before the keys, over that of the captures."""

    @property
    def runs(self) -> list[tuple[Look, ...]]:
        """The looks that a run has one after the other. The largest size adds little but space, the light theme little
        but colors: `make exhaustive` draws them, and `make test` those of `ALL_LOOKS`."""
        dark, (large, light) = LOOKS[:2], LOOKS[2:]
        return [dark, (*dark, light), (large,)] if self.follows else [(look,) for look in LOOKS]


JAVA, LIBRDKAFKA = "compare-java-1", "compare-librdkafka-1"
RECORDS: Final = "records/orders"
"""Opened with the schemas beside it."""
PICTURES: Final = (
    Picture("main", ("librdkafka",)),
    Picture("field", ("java",), "4 G enter j j r tab"),
    Picture("tls-record", ("tls/java-1.3",), "1 0 G enter j j b"),
    Picture("help", ("java",), "question_mark"),
    Picture("filter", ("java",), "slash a p i equals_sign equals_sign F e t c h enter"),
    Picture("completion", ("java",), "slash a p i equals_sign equals_sign F e"),
    Picture("columns", ("java",), "C", follows=False),
    Picture("colors", ("java",), "v"),
    Picture("sorting", ("java",), "z"),
    Picture("pointed", ("java",), "4 G right right right", follows=False),
    Picture("marks", ("java",), "j m j j m"),
    Picture("ask", ("java",), "ctrl+f o r d e r s"),
    Picture("export", ("java",), "j m j m x j j l"),
    Picture("search", ("java",), "ctrl+f o r d e r s enter", follows=False),
    Picture("follow", ("java",), "1 8 G J", follows=False),
    Picture("copy", ("java",), "enter y"),
    Picture("findings", ("trouble-rebalance-loop",), "F"),
    Picture("explained", ("trouble-rebalance-loop",), "e i"),
    Picture("command", ("java",), "colon f i"),
    Picture("io-graph", (LIBRDKAFKA,), "I right right right shift+right shift+right", follows=False),
    Picture("follow-text", ("java",), "8 G V", follows=False),
    Picture("connection", ("tls/java-1.3",), "8 G W"),
    Picture("saved-filters", ("java",), "slash a p i equals_sign equals_sign F e t c h enter B"),
    Picture("overview", (LIBRDKAFKA,), "o"),
    Picture("records", (RECORDS,), "R 1 1 G"),
    Picture("record", (RECORDS,), "R 1 2 G tab j j"),
    Picture("record-hex", (RECORDS,), "R 5 G b"),
    Picture("records-none", (RECORDS,), "R slash r e c o r d . c o n t r o l enter"),
    Picture("records-codecs", ("java",), "R"),
    Picture("sequence", (LIBRDKAFKA,), "D", follows=False),
    Picture("timelines", ("java-classic",), "L", follows=False),
    Picture("proxy-faults", ("java",), over=proxy_dialogs.faults),
    Picture("proxy-held", ("java",), over=proxy_dialogs.held),
    Picture("diff", (JAVA, LIBRDKAFKA), follows=False),
    Picture("diff-pairs", (JAVA, LIBRDKAFKA), "v"),
    Picture("compare-client", ("java-classic",), "1 9 G p"),
    Picture("compare-marked", ("java-classic",), "2 0 G m j equals_sign", follows=False),
    Picture("check", ("librdkafka",), "K", follows=False),
    Picture("matrix", (JAVA, LIBRDKAFKA, "compare-kafka-python-1", "compare-aiokafka-1"), "j j j j j j", follows=False),
)


def file_name(picture: Picture, size: Size, theme: str) -> str:
    """Return the name of one picture."""
    return f"{picture.name}-{size[0]}x{size[1]}-{theme}.svg"


async def draw(picture: Picture, looks: Sequence[Look]) -> dict[str, str]:
    """Return the screen in each look as SVG, without what changes from run to run, by file name."""
    with ExitStack() as opened:
        home = opened.enter_context(TemporaryDirectory())
        os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_STATE_HOME"] = home
        paths = [str(PCAPS / f"{name}.pcapng") for name in picture.captures]
        opener = opener_with(str(PCAPS / "records/schemas")) if RECORDS in picture.captures else None
        captures = [opened.enter_context(Capture([path], opener=opener)) for path in paths]
        sides = [DiffSide(capture, name) for capture, name in zip(captures, picture.captures, strict=True)]
        main = MatrixScreen(sides) if len(sides) > 2 else DiffScreen(*sides) if sides[1:] else MainScreen(captures[0])
        app = KDissectApp(main)
        drawn = {}
        async with app.run_test(size=looks[0][0]) as pilot:
            await _settle(pilot)
            if picture.over is not None:
                await app.push_screen(picture.over())
                await _settle(pilot)
            for key in picture.keys.split():
                await pilot.press(key)
                await _settle(pilot)
            for size, theme in looks:
                app.theme = THEMES[theme]
                await pilot.resize_terminal(*size)
                await _settle(pilot)
                name = file_name(picture, size, theme)
                drawn[name] = _taken(app)
                for _ in range(PATIENCE):
                    if not is_kept(name) or drawn[name] == kept(name):
                        break
                    await pilot.pause(0.1)
                    drawn[name] = _taken(app)
        return drawn


def _taken(app: KDissectApp) -> str:
    """The screen as Textual draws it: `one_text_a_word` would say nothing more of it, in twice the bytes. Names in it
    begin with no number, for which all would be printed."""
    with patch.object(Console, "export_svg", partialmethod(Console.export_svg, unique_id="terminal")):
        return App.export_screenshot(app)


async def _settle(pilot: Pilot[None]) -> None:
    """Wait until nothing runs: what a key started may start something else."""
    quiet = 0
    while quiet < 2:
        workers = [each for each in pilot.app.workers if not each.is_finished and each.group not in ("export", "saved")]
        if workers:  # those that are left out wait for the user
            with suppress(WorkerCancelled):
                await pilot.app.workers.wait_for_complete(workers)
        quiet = 0 if workers else quiet + 1
        for line in pilot.app.screen.query(Input):
            line.cursor_blink = False  # a picture has no time for it
        await pilot.pause()


def is_kept(name: str) -> bool:
    """Return whether somebody has looked at it and kept it."""
    return (KEPT / f"{name}z").exists()


def kept(name: str) -> str:
    """Return a picture as it was kept."""
    return gzip.decompress((KEPT / f"{name}z").read_bytes()).decode()


def keep(name: str, svg: str) -> None:
    """Keep a picture; look at it before you commit it."""
    DRAWN.mkdir(parents=True, exist_ok=True)
    KEPT.mkdir(exist_ok=True)
    (DRAWN / name).write_text(svg)
    (KEPT / f"{name}z").write_bytes(gzip.compress(svg.encode(), mtime=0))


def main(names: list[str]) -> None:
    """Draw them again."""
    for picture in PICTURES:
        for looks in picture.runs if not names or picture.name in names else ():
            for name, svg in asyncio.run(draw(picture, looks)).items():
                if not is_kept(name) or kept(name) != svg:
                    keep(name, svg)
                    print(f"look at {DRAWN / name}")


if __name__ == "__main__":
    main(sys.argv[1:])

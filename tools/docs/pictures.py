"""The pictures of README and documentation: `make pictures` draws them with the program itself. Look at each.

Screens are drawn without a terminal, as the tests do, and become PNG with rsvg-convert; a notebook with Chromium;
the first minute becomes an SVG whose frames follow each other.
"""

import asyncio
import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import dissector
from tests.conftest import PCAPS
from tests.tui.pictures import Picture, _settle, draw, file_name
from tools.lab.tools import require
from tui.app import KDissectApp
from tui.screens.main_screen import MainScreen
from tui.terminal_app import one_text_a_word

DOCS: Final = Path(__file__).parents[2] / "docs"
PIXELS: Final = 1482
_FONT: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


class DocumentPicture(NamedTuple):
    """A screen in a document."""

    name: str
    """Of its file: ``docs/NAME.png``."""
    captures: tuple[str, ...]
    keys: str = ""
    size: tuple[int, int] = (120, 40)


JAVA, LIBRDKAFKA = "compare-java-1", "compare-librdkafka-1"
SCREENS: Final = (
    DocumentPicture("screen", ("java-cooperative",), "3 0 G enter " + "j " * 24),
    DocumentPicture("overview", (LIBRDKAFKA,), "o"),
    DocumentPicture("sequence", (LIBRDKAFKA,), "D"),
    DocumentPicture("records", ("records/orders",), "R j j"),
    DocumentPicture("io-graph", ("java-transactions",), "I"),
    DocumentPicture("timelines", ("trouble-rebalance-loop",), "L"),
    DocumentPicture("finding", ("trouble-rebalance-loop",), "8 3 G i"),
    DocumentPicture("diff", (JAVA, LIBRDKAFKA)),
)
FIRST_MINUTE: Final = (
    ("", 3.0), ("down down down", 1.5), ("enter", 1.5), ("j j j j", 2.0), ("r", 2.0), ("tab", 1.5),
    ("escape slash", 1.0), ("e r r o r", 1.5), ("enter", 2.5), ("i", 4.0), ("escape", 1.0), ("u", 1.0),
    ("o", 3.5), ("escape", 1.0), ("D", 4.0), ("escape", 1.0), ("L", 4.0),
)  # fmt: skip
"""Keys, and for how many seconds what they lead to is shown."""


def drawn(picture: DocumentPicture) -> str:
    """Return a screen as SVG."""
    as_test = Picture(picture.name, picture.captures, picture.keys)
    svg = asyncio.run(draw(as_test, [(picture.size, "dark")]))[file_name(as_test, picture.size, "dark")]
    return one_text_a_word(_FONT.sub("", svg))


def write_png(svg: str, path: Path) -> None:
    """Write a screen as PNG."""
    command = [require("rsvg-convert"), "--width", str(PIXELS), "--output", str(path)]
    subprocess.run(command, input=svg.encode(), check=True)


async def frames(capture: str, steps: tuple[tuple[str, float], ...]) -> list[tuple[str, float]]:
    """Return the screen after each step as SVG, and how long it is shown."""
    with ExitStack() as opened:
        home = opened.enter_context(TemporaryDirectory())
        os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_STATE_HOME"] = home
        from dissector.capture_session import Capture

        app = KDissectApp(MainScreen(opened.enter_context(Capture([str(PCAPS / f"{capture}.pcapng")]))))
        taken = []
        async with app.run_test(size=(100, 30)) as pilot:
            for keys, seconds in steps:
                await _settle(pilot)
                for key in keys.split():
                    await pilot.press(key)
                    await _settle(pilot)
                taken.append((_FONT.sub("", app.export_screenshot(title="kdissect")), seconds))
        return taken


def animated(taken: list[tuple[str, float]]) -> str:
    """Return one SVG that shows frame after frame, for ever."""
    total = sum(seconds for _, seconds in taken)
    begin, parts = 0.0, []
    size = re.search(r'viewBox="([^"]+)"', taken[0][0])
    assert size is not None
    for number, (svg, seconds) in enumerate(taken):
        inner = re.sub(r"^.*?<svg[^>]*>|</svg>\s*$", "", svg, flags=re.DOTALL)
        inner = re.sub(r"terminal-\d+-", f"f{number}-", inner)
        first, last = 100 * begin / total, 100 * (begin + seconds) / total
        hidden = "" if not number else "0% {visibility:hidden} "
        style = (
            f"@keyframes k{number} {{{hidden}{first:.3f}% {{visibility:visible}} {last:.3f}% {{visibility:hidden}} "
            f"100% {{visibility:hidden}}}} #k{number} {{animation:k{number} {total}s step-end infinite}}"
        )
        parts.append(f'<style>{style}</style><g id="k{number}">{inner}</g>')
        begin += seconds
    return f'<svg viewBox="{size[1]}" xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>\n'


def notebook_page() -> str:
    """Return what a notebook shows for a capture and for an exchange, as a page."""
    with dissector.open(PCAPS / "java.pcapng") as capture:
        cells = [("capture", capture._repr_html_()), ("capture[8]", capture[8]._repr_html_())]
    shown = "".join(f"<pre>In [{n}]: {code}</pre>{html}" for n, (code, html) in enumerate(cells, 1))
    return f'<meta charset="utf-8"><body style="font:14px sans-serif;margin:24px">{shown}'


def write_notebook(path: Path) -> None:
    """Write it as PNG."""
    with TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(notebook_page(), encoding="utf-8")
        command = [
            require("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--user-data-dir={folder}/profile", "--window-size=1100,900", f"--screenshot={path}", page.as_uri(),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)


def main(names: list[str]) -> None:
    """Draw all pictures, or those that are named."""
    for picture in SCREENS:
        if not names or picture.name in names:
            write_png(drawn(picture), DOCS / f"{picture.name}.png")
    if not names or "notebook" in names:
        write_notebook(DOCS / "notebook.png")
    if not names or "first-minute" in names:
        (DOCS / "first-minute.svg").write_text(animated(asyncio.run(frames("java", FIRST_MINUTE))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

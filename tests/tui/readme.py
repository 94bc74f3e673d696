"""The picture of the diff screen in the README: `python -m tests.tui.readme` draws it, with rsvg-convert."""

import asyncio
import subprocess
from pathlib import Path
from typing import Final

from tests.tui.pictures import PICTURES, draw, file_name
from tools.lab.tools import require
from tui.screenshot import one_text_a_word

DOCS: Final = Path(__file__).parents[2] / "docs"
SIZE: Final = (120, 40)
WIDTH: Final = 1482
"""Pixels."""


def main() -> None:
    """Draw it."""
    picture = next(each for each in PICTURES if each.name == "diff")
    svg = asyncio.run(draw(picture, [SIZE]))[file_name(picture, SIZE, "dark")]
    command = [require("rsvg-convert"), "--width", str(WIDTH), "--output", str(DOCS / "diff.png")]
    subprocess.run(command, input=one_text_a_word(svg).encode(), check=True)


if __name__ == "__main__":
    main()

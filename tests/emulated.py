"""What stands on a terminal's screen: a program's output, carried out as far as Textual makes use of a terminal.

Invariants:
  * output may come in pieces cut anywhere;
  * only text, carriage return, line feed and the cursor's placing (CUP) change what stands; colors and modes do not.
"""

import re
from codecs import getincrementaldecoder
from typing import Final

from rich.cells import cell_len

_SEQUENCE: Final = re.compile(
    r"\x1b\[(?P<numbers>[\x30-\x3f]*)[\x20-\x2f]*(?P<final>[\x40-\x7e])"
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b[^\[\]PX^_]"
)


class Emulated:
    """A screen of so many columns and lines."""

    def __init__(self, columns: int, lines: int) -> None:
        self._cells = [[" "] * columns for _ in range(lines)]
        self._x = self._y = 0
        self._decode = getincrementaldecoder("utf-8")().decode
        self._rest = ""

    @property
    def lines(self) -> list[str]:
        """What stands there; the second cell of a wide character is empty."""
        return ["".join(line) for line in self._cells]

    def feed(self, written: bytes) -> None:
        """Carry out what was written."""
        text, at = self._rest + self._decode(written), 0
        while at < len(text):
            if text[at] != "\x1b":
                self._write(text[at])
                at += 1
            elif found := _SEQUENCE.match(text, at):
                if found["final"] == "H":
                    self._y, self._x = [int(number or 1) - 1 for number in (found["numbers"] + ";").split(";")[:2]]
                at = found.end()
            else:  # it goes on in the next piece
                break
        self._rest = text[at:]

    def _write(self, character: str) -> None:
        if character == "\r":
            self._x = 0
        elif character == "\n":
            self._y += 1
        elif width := cell_len(character):
            for cell in (character, "")[:width]:
                if self._y < len(self._cells) and self._x < len(self._cells[0]):
                    self._cells[self._y][self._x] = cell
                self._x += 1

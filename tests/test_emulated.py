"""The screen that tests look at shows what a terminal would."""

from tests.cases import cases
from tests.emulated import Emulated

WRITTEN = (
    "\x1b[?25l\x1b[2;3Hone\x1b[1m two\r\n\x1b]0;title\x07\x1b[38;2;1;2;3m你 x\x1b[H\x1b[0mtop\x1b[9;9Hoff".encode()
)
SHOWN = ["top       ", "  one two ", "你 x      "]


@cases("size", [1, 2, 3, 7, 999])
def test_output_in_pieces_of_any_size_gives_the_same_screen(size: int) -> None:
    screen = Emulated(10, 3)
    for at in range(0, len(WRITTEN), size):
        screen.feed(WRITTEN[at : at + size])
    assert screen.lines == SHOWN

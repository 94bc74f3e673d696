"""Reading takes calls in proportion to the text, whatever is in it."""

from collections.abc import Callable

import pytest

from dissector.pasted.reading import read_bytes
from tests.calls import count_calls
from tests.cases import cases

MESSAGE = "00 00 00 04 00 00 00 05 "
UNFINISHED = "02 fa f0 80 00 00 00 05"
MORE = "aa bb cc dd ee ff 11 22"
ROWS = (
    "00000000: 00 00 00 1c 00 00 00 05 00 01 00 01 00 00 00 01\n"
    "00000010: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n"
)


def pieces_of_a_message_behind_others(count: int) -> str:
    return "\n\n".join([MESSAGE * count + UNFINISHED, *[MORE] * count])


def messages_with_a_hole_each(count: int) -> str:
    rows = (f"{32 * n:08x}: 00 00 00 1c 00 00 00 05 00 01 00 01 00 00 00 01" for n in range(1, count))
    return ROWS + "\n".join(rows)


def calls(text: str) -> int:
    return count_calls(lambda: read_bytes(text.encode()))


@pytest.mark.long
@pytest.mark.slow
@cases("text", [pieces_of_a_message_behind_others, messages_with_a_hole_each])
def test_four_times_the_text_takes_four_times_the_calls(text: Callable[[int], str]) -> None:
    calls(text(10))  # what is imported and compiled on first use
    assert calls(text(400)) < 5 * calls(text(100))

"""Numbers as one says them."""

import pytest

from dissector.core.text import byte_range, rough_duration


def test_a_range_of_bytes_is_said_as_one_says_it() -> None:
    assert [byte_range(30, size) for size in (0, 1, 4)] == ["byte 30", "byte 30", "bytes 30 to 33"]


@pytest.mark.parametrize(("ms", "words"), [
    (0.4, "0 ms"), (999.4, "999 ms"), (999.6, "1 s"), (1000, "1 s"), (-1300, "-1.3 s"), (9940, "9.9 s"), (9960, "10 s"),
    (119_400, "119 s"), (119_600, "2 min"), (940_000, "15 min 40 s"),
])  # fmt: skip
def test_a_duration_in_a_sentence_is_rounded_once(ms: float, words: str) -> None:
    assert rough_duration(round(ms * 1_000_000)) == words

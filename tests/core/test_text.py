"""Numbers as one says them."""

from dissector.core.text import byte_range


def test_a_range_of_bytes_is_said_as_one_says_it() -> None:
    assert [byte_range(30, size) for size in (0, 1, 4)] == ["byte 30", "byte 30", "bytes 30 to 33"]

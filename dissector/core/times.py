"""Times are in nanoseconds, since 1970 UTC or as durations: how many a second has, and those of its decimals."""

from typing import Final

SECOND: Final = 1_000_000_000
MILLISECOND: Final = 1_000_000


def fraction_ns(digits: str) -> int:
    """Return the nanoseconds of at most nine digits behind the point of a second: of ``25`` a quarter of one."""
    return int(digits.ljust(9, "0"))

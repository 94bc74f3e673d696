"""Times are in nanoseconds, since 1970 UTC or as durations: how many each unit has, and those of a second's
decimals."""

from typing import Final

SECOND: Final = 1_000_000_000
MILLISECOND: Final = 1_000_000
NANOSECONDS: Final = {
    "ns": 1, "us": 1_000, "µs": 1_000, "ms": MILLISECOND, "s": SECOND, "m": 60 * SECOND, "min": 60 * SECOND,
    "h": 3_600 * SECOND, "d": 86_400 * SECOND,
}  # fmt: skip
"""Units of durations that are typed."""


def fraction_ns(digits: str) -> int:
    """Return the nanoseconds of at most nine digits behind the point of a second: of ``25`` a quarter of one."""
    return int(digits.ljust(9, "0"))

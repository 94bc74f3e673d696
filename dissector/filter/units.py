"""Units of values in filters."""

from typing import Final

NANOSECONDS: Final = {
    "ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "min": 60 * 10**9,
    "h": 3600 * 10**9, "d": 86400 * 10**9,
}  # fmt: skip
"""Units of durations."""
BYTES: Final = {
    "B": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "kB": 10**3, "KB": 10**3, "MB": 10**6,
    "GB": 10**9, "TB": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "KiB": 2**10, "MiB": 2**20,
    "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
"""Units of sizes and of numbers; decimal ones as the list of rows prints them."""
UNITS: Final = NANOSECONDS.keys() | BYTES.keys()

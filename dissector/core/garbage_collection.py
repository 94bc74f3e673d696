"""How often a command that reads and prints looks for cycles: seldom. Reading makes columns, and decoded rows hang
together without cycles: looking for some takes up to a fifth of the time, and finds next to nothing."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

COLLECT_AFTER: Final = 500_000
"""Objects between two collections."""


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Collect seldom while the context lasts. Not for the screen, nor for who uses the library: they go on."""
    usual = gc.get_threshold()
    gc.set_threshold(COLLECT_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*usual)

"""Infrequent garbage collection for commands that read and print.

Reading makes columns, and decoded rows have no cycles: collection takes up to a fifth of the time, and frees next to
nothing.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

COLLECTION_THRESHOLD: Final = 500_000
"""Objects between two collections."""


@contextmanager
def infrequent_collection() -> Iterator[None]:
    """Collect infrequently within the context. Not for the screen, nor in the library: these run for long."""
    threshold = gc.get_threshold()
    gc.set_threshold(COLLECTION_THRESHOLD)
    try:
        yield
    finally:
        # All objects become old ones. Else the threshold would have all that are new searched for cycles at once.
        gc.freeze()
        gc.unfreeze()
        gc.set_threshold(*threshold)

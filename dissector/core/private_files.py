"""Files that only their user may read: a capture may hold passwords, and so may what is made of it."""

import os


def private(path: str, flags: int) -> int:
    """Open a file, for `open(…, opener=private)`: one that is made has the mode 0600, what exists keeps its own."""
    return os.open(path, flags, 0o600)

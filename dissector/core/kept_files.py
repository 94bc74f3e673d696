"""Files that were opened early and are read late: a process that gives up its rights in between may still read them."""

import os
from pathlib import Path
from typing import BinaryIO, Final, cast

_kept: Final[dict[str, int]] = {}
"""Descriptors by the paths that the user has given."""


def keep_open(path: str) -> None:
    """Open a file for later, if it can be opened."""
    try:
        _kept[path] = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):  # `open_kept` says so
        return


def open_kept(path: str) -> BinaryIO:
    """Open a file by its path, or again what was kept under it, at any position. Raises `OSError`."""
    try:
        return Path(path).open("rb")
    except PermissionError:
        if path not in _kept:
            raise
        return cast(BinaryIO, os.fdopen(os.dup(_kept[path]), "rb"))

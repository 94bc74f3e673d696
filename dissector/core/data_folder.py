"""The user's data folder, by the XDG base directory specification: imported releases, the proxy's local CA."""

import os
import sys
from pathlib import Path


def data_folder() -> Path:
    """Return ``$XDG_DATA_HOME/kdissect``; without that variable it is in ``~/.local/share``, on macOS in
    ``~/Library/Application Support``. Raises `RuntimeError` for a user without a home."""
    data_home = os.environ.get("XDG_DATA_HOME", "")
    if Path(data_home).is_absolute():  # the specification: relative paths are ignored
        base = Path(data_home)
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path.home() / ".local" / "share"
    return base / "kdissect"

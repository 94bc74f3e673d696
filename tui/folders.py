"""Where kdissect keeps what is the user's: the configuration, and what it remembers. The XDG base directory rules.

Invariant: a file is there whole, as it was or as it is now; who writes has a name of their own for it until then.
"""

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

OURS: Final = "kdissect"


def config_folder() -> Path:
    """``$XDG_CONFIG_HOME/kdissect``. Raises `OSError` for a user without a home."""
    return _folder("XDG_CONFIG_HOME", ".config")


def state_folder() -> Path:
    """``$XDG_STATE_HOME/kdissect``. Raises `OSError` for a user without a home."""
    return _folder("XDG_STATE_HOME", ".local/state")


def _folder(variable: str, usual: str) -> Path:
    given = os.environ.get(variable, "")
    try:
        # The rule for these variables: what is relative does not count.
        base = Path(given) if Path(given).is_absolute() else Path.home() / usual
    except RuntimeError as error:
        raise OSError(f"there is no home folder; set {variable}") from error
    return base / OURS


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, for its user's eyes alone, in one step. Raises `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise

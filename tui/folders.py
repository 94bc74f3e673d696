"""The folders of the configuration and of the state, by the XDG base directory specification.

Invariant: a file is always complete, old or new: it is written under a temporary name of its writer and then renamed.
"""

import os
from pathlib import Path
from typing import Final

from dissector.core.written_files import PRIVATE, replaced

OURS: Final = "kdissect"


def config_folder() -> Path:
    """Return ``$XDG_CONFIG_HOME/kdissect``. Raises `OSError` for a user without a home."""
    return _folder("XDG_CONFIG_HOME", ".config")


def state_folder() -> Path:
    """Return ``$XDG_STATE_HOME/kdissect``. Raises `OSError` for a user without a home."""
    return _folder("XDG_STATE_HOME", ".local/state")


def _folder(variable: str, usual: str) -> Path:
    given = os.environ.get(variable, "")
    try:
        # The specification: relative paths in these variables are ignored.
        base = Path(given) if Path(given).is_absolute() else Path.home() / usual
    except RuntimeError as error:
        raise OSError(f"no home folder; set {variable}") from error
    return base / OURS


def write_file(path: Path, data: bytes) -> None:
    """Write a file in one step, readable for its user only. Raises `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with replaced(str(path), PRIVATE) as file:
        file.write(data)

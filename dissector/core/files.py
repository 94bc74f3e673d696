"""Files of the program and of its user: what comes with it, the user's data folder, files that only the user may read,
or that are replaced in one step, files that are opened before the process gives up its rights, and why a file can't be
written."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from dissector.core.text import os_reason

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_PACKAGE: Final = Path(__file__).parents[1]
_kept: Final[dict[str, int]] = {}
"""Descriptors by the paths that the user has given."""


def data_folder() -> Path:
    """Return the folder for imported releases and the proxy's local CA, by the XDG base directory specification:
    ``$XDG_DATA_HOME/kdissect``; without that variable it is in ``~/.local/share``, on macOS in
    ``~/Library/Application Support``. Raises `RuntimeError` for a user without a home."""
    data_home = os.environ.get("XDG_DATA_HOME", "")
    if Path(data_home).is_absolute():  # the specification: relative paths are ignored
        base = Path(data_home)
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path.home() / ".local" / "share"
    return base / "kdissect"


def private(path: str, flags: int) -> int:
    """Open a file, for `open(…, opener=private)`: one that is made has the mode 0600, what exists keeps its own.

    A capture may hold passwords, and so may what is made of it."""
    return os.open(path, flags, 0o600)


@contextmanager
def written_beside(path: Path, data: bytes) -> Iterator[Path]:
    """Write data to a file that only the user may read, in the folder of `path`, which it can replace in one step. It
    is removed if it is still there at the end. Raises `OSError`."""
    import tempfile  # it takes a while, and most runs write no such file

    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    written = Path(name)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
        yield written
    finally:
        with suppress(OSError):
            written.unlink()


def package_file(*path: str) -> "Traversable":
    """Return a file by its path in the package `dissector`, which may be in a zip file, as Spark's workers get it."""
    file = _PACKAGE.joinpath(*path)
    if file.exists():
        return file
    from importlib.resources import files  # it imports what reads zip files

    return files("dissector").joinpath(*path)


def is_directory(path: str) -> bool:
    """Return whether a path is that of a directory; False if that can't be checked, as opening it shows why."""
    return os.path.isdir(path)  # noqa: PTH112  # Path.is_dir raises for long names and missing permission


def is_file(path: str) -> bool:
    """Return whether a path is that of a file; False if that can't be checked."""
    return os.path.isfile(path)  # noqa: PTH113  # as in `is_directory`


def keep_open(path: str) -> None:
    """Open a file for `open_kept`, if it can be opened."""
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


def write_reason(path: str, error: Exception) -> str:
    """Return why the system refused to write a file: ``there is no folder reports``, or its own words."""
    if getattr(error, "errno", None) == errno.ENXIO:
        return "nobody reads this pipe"
    missing = None
    try:
        for folder in Path(path).parents:
            if folder.is_dir():
                break
            if folder.exists():
                return f"{folder} is a file, not a folder"
            missing = folder
    except OSError:  # a name that is too long, a folder that nobody may look into
        return os_reason(error)
    if isinstance(error, FileNotFoundError) and missing is not None:
        return f"there is no folder {Path(path).parent}"
    return os_reason(error)

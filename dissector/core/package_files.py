"""Files that come with the program: tables of the protocol, the native kernel."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_PACKAGE: Final = Path(__file__).parents[1]


def package_file(*path: str) -> "Traversable":
    """Return a file by its path in the package `dissector`, which may be in a zip file, as Spark's workers get it."""
    file = _PACKAGE.joinpath(*path)
    if file.exists():
        return file
    from importlib.resources import files  # it imports what reads zip files

    return files("dissector").joinpath(*path)

"""The command that shows somebody else the same exchanges of the same files."""

import shlex
from collections.abc import Sequence

from dissector.text import clean


def command(names: Sequence[str], chosen: str | None, fitting: str | None = None) -> str:
    """A line for a shell. `chosen` are row numbers from 1 as ``3,10-20``, None for all rows; of these, those that fit a
    filter.

    A name with what a terminal may act on is shown as it is seen, and does not find the file again.
    """
    words = ["kdissect", "show" if chosen is None else "export", *(_file(name) for name in names)]
    words += [] if fitting is None else ["-Y", fitting]
    words += [] if chosen is None else ["--rows", chosen, "--format", "json", "-w", "-"]
    return clean(shlex.join(words))


def _file(name: str) -> str:
    """A name that no option can be taken for."""
    return f"./{name}" if name.startswith("-") and name != "-" else name

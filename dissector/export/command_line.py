"""The command that shows somebody else the same exchanges of the same files."""

import shlex
from collections.abc import Iterable, Sequence

from dissector.core.text import clean


def show_command(names: Sequence[str], chosen: str | None, fitting: str | None = None) -> str:
    """A line for a shell. `chosen` are row numbers from 1 as ``3,10-20``, None for all rows; of these, those that fit a
    filter.

    A name with what a terminal may act on is shown as it is seen, and does not find the file again.
    """
    words = ["kdissect", "show" if chosen is None else "export", *(_file(name) for name in names)]
    words += [] if fitting is None else ["-Y", fitting]
    words += [] if chosen is None else ["--rows", chosen, "--format", "json", "-w", "-"]
    return clean(shlex.join(words))


def format_rows(rows: Iterable[int]) -> str:
    """Return rows, from 0 and ascending, as `--rows` takes them: ``3,10-20``."""
    parts: list[list[int]] = []
    for row in rows:
        if parts and row == parts[-1][1]:
            parts[-1][1] = row + 1
        else:
            parts.append([row, row + 1])
    return ",".join(str(stop) if stop == start + 1 else f"{start + 1}-{stop}" for start, stop in parts)


def _file(name: str) -> str:
    """Return a name that can't be taken for an option."""
    return f"./{name}" if name.startswith("-") and name != "-" else name

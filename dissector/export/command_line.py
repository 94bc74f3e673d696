"""The shell command that shows the same exchanges of the same files."""

import shlex
from collections.abc import Iterable, Sequence

from dissector.core.text import clean


def show_command(names: Sequence[str], chosen: str | None, row_filter: str | None = None) -> str:
    """Return a line for a shell. `chosen` are row numbers from 1 as ``3,10-20``, None for all; `row_filter`
    selects among them.

    A file name with control characters is sanitized: the command does not find its file.
    """
    words = ["kdissect", "show" if chosen is None else "export", *(_file(name) for name in names)]
    words += [] if row_filter is None else ["-Y", row_filter]
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

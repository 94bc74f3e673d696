"""The shell command that shows the same exchanges of the same files.

It is one line of printable characters for any POSIX shell. A word that a terminal might act on is written by `printf`,
in octal: dash has no `$'…'`. A command substitution loses line feeds at its end, so a word that ends in one goes
through a variable.
"""

import os
import shlex
from collections.abc import Iterable, Sequence
from typing import Final

from dissector.core.text import clean

_AS_IT_IS: Final = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 #()+,./:;<=>?@[]^_{|}~&*%"
)
"""Bytes that mean themselves between single quotes, in a format of `printf`, and in history of interactive shells."""
_END: Final = "."
"""Stands behind the line feeds that end a word."""


def show_command(
    names: Sequence[str], chosen: str | None, row_filter: str | None = None, decode_as: Iterable[str] = ()
) -> str:
    """Return a line for a shell. `chosen` are row numbers from 1 as ``3,10-20``, None for all; `row_filter`
    selects among them; `decode_as` is what the user said of connections."""
    words = ["kdissect", "show" if chosen is None else "export", *(_file(name) for name in names)]
    words += [word for choice in decode_as for word in ("-d", choice)]
    words += [] if row_filter is None else ["-Y", row_filter]
    words += [] if chosen is None else ["--rows", chosen, "--format", "json", "-w", "-"]
    before = [f"word{at}={_printed(word + _END)}; " for at, word in enumerate(words) if _ends_in_line_feed(word)]
    return "".join(before) + " ".join(
        f'"${{word{at}%{_END}}}"' if _ends_in_line_feed(word) else shell_word(word) for at, word in enumerate(words)
    )


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


def _ends_in_line_feed(word: str) -> bool:
    return word.endswith("\n")


def shell_word(word: str) -> str:
    """Return a word as a shell and a terminal take it, without a control character, which would act on a terminal into
    which it is pasted. Line feeds at its end are lost."""
    return shlex.quote(word) if clean(word) == word else f'"{_printed(word)}"'


def _printed(word: str) -> str:
    """Return the command substitution that gives a word."""
    octal = "".join(chr(byte) if byte in _AS_IT_IS else f"\\{byte:03o}" for byte in os.fsencode(word))
    return f"$(printf '{octal.replace('%', '%%')}')"

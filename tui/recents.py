"""Recent captures and recent filters.

They are kept as JSON in the state folder. It is no error if that can't be read or written: nothing is remembered then.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from dissector.core.files import is_file
from dissector.core.text import clean
from tui.folders import state_folder, write_file

KEPT: Final = 50
LONGEST: Final = 4_096
"""Characters of an entry that is kept."""
NAMED: Final = 3
"""Files of a capture that are named where it is offered."""
FILTERS, FILES = "filters", "files"
_BETWEEN: Final = "\0"
"""Between files that were opened together: no path contains it."""


def recent(kind: str) -> list[str]:
    """Return what was remembered, the latest first."""
    return _read().get(kind, [])


def remember(kind: str, text: str) -> None:
    """Put an entry first."""
    if not text or len(text) > LONGEST:
        return
    everything = _read()
    everything[kind] = [text, *(each for each in everything.get(kind, []) if each != text)][:KEPT]
    with suppress(OSError, UnicodeError):
        write_file(state_folder() / "recents.json", json.dumps(everything, indent=1).encode())


def recent_captures() -> list[list[str]]:
    """Return the files of captures that were opened before and still exist, the latest first; more than one if they
    were opened together."""
    return [paths for paths in (text.split(_BETWEEN) for text in recent(FILES)) if _all_there(paths)]


def remember_capture(paths: Sequence[str]) -> None:
    """Put a capture first, by the absolute paths of its files. Pipes are not remembered."""
    if _all_there(paths):
        remember(FILES, _BETWEEN.join(os.path.realpath(path) for path in paths))


def _all_there(paths: Sequence[str]) -> bool:
    return all(is_file(path) for path in paths)


def _read() -> dict[str, list[str]]:
    try:
        value = json.loads((state_folder() / "recents.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    kept = {}
    for kind in (FILTERS, FILES):
        found = value.get(kind, [])
        kept[kind] = [each for each in found if isinstance(each, str) and each] if isinstance(found, list) else []
    return kept


def capture_words(paths: Sequence[str]) -> tuple[str, str]:
    """Return the names of a capture's files, and the folder of the first one; clean."""
    names = ", ".join(Path(path).name for path in paths[:NAMED])
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return clean(names + more), clean(str(Path(paths[0]).parent))

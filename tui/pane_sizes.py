"""The sizes of the panes, saved in the state folder as JSON.

It is no error if the file can't be read or written: the panes have their default sizes then.
"""

import json
import math
from contextlib import suppress
from typing import Final, NamedTuple

from tui.folders import state_folder, write_whole

LIST_SHARE: Final = 0.45
"""The list's share of the height of list and lower panes."""
_FILE: Final = "panes.json"


class PaneSizes(NamedTuple):
    """The list's share of the height, and that of the bytes pane of the width; None: its default width."""

    list_share: float = LIST_SHARE
    bytes_share: float | None = None


def load_pane_sizes() -> PaneSizes:
    """Return the saved sizes."""
    try:
        value = json.loads((state_folder() / _FILE).read_bytes())
        height, width = float(value["list_share"]), value.get("bytes_share")
        width = None if width is None else float(width)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return PaneSizes()
    if not math.isfinite(height) or (width is not None and not math.isfinite(width)):
        return PaneSizes()
    return PaneSizes(_share(height), None if width is None else _share(width))


def _share(value: float) -> float:
    return max(0.0, min(1.0, value))


def save_pane_sizes(panes: PaneSizes) -> None:
    """Save sizes for the next start."""
    with suppress(OSError):
        write_whole(state_folder() / _FILE, json.dumps(panes._asdict()).encode())

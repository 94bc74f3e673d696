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
FARTHEST: Final = 1_000
"""Cells by which the bytes may be wider, or narrower, than by default: as wide as screens are."""
_FILE: Final = "panes.json"


class PaneSizes(NamedTuple):
    """The list's share of the height, and the cells that the bytes pane is wider than by default."""

    list_share: float = LIST_SHARE
    bytes_extra: int = 0


def load_pane_sizes() -> PaneSizes:
    """Return the saved sizes."""
    try:
        value = json.loads((state_folder() / _FILE).read_bytes())
        share, extra = float(value["list_share"]), int(value["bytes_extra"])
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return PaneSizes()
    if not math.isfinite(share):
        return PaneSizes()
    return PaneSizes(max(0.0, min(1.0, share)), max(-FARTHEST, min(FARTHEST, extra)))


def save_pane_sizes(panes: PaneSizes) -> None:
    """Save sizes for the next start."""
    with suppress(OSError):
        write_whole(state_folder() / _FILE, json.dumps(panes._asdict()).encode())

"""How much room the panes had when the user last left them: kept in the state folder, as JSON.

That it can't be read or written is no error: then the panes are as usual.
"""

import json
import math
from contextlib import suppress
from typing import Final, NamedTuple

from tui.folders import state_folder, write_whole

LIST_SHARE: Final = 0.45
"""Of the height that list and lower panes have together."""
FARTHEST: Final = 1_000
"""Cells that the bytes may have more, or less, than usual: as wide as screens are."""
_FILE: Final = "panes.json"


class PaneSizes(NamedTuple):
    """The list's share of the height, and the cells that the bytes have more than usual at a screen's width."""

    list_share: float = LIST_SHARE
    bytes_extra: int = 0


def load_pane_sizes() -> PaneSizes:
    """As they were left."""
    try:
        value = json.loads((state_folder() / _FILE).read_bytes())
        share, extra = float(value["list_share"]), int(value["bytes_extra"])
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return PaneSizes()
    if not math.isfinite(share):
        return PaneSizes()
    return PaneSizes(max(0.0, min(1.0, share)), max(-FARTHEST, min(FARTHEST, extra)))


def save_pane_sizes(panes: PaneSizes) -> None:
    """Have them so the next time."""
    with suppress(OSError):
        write_whole(state_folder() / _FILE, json.dumps(panes._asdict()).encode())

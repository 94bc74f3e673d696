"""The dialog that asks for a capture to compare with."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dissector.core.text import clean
from tui.recents import recent_captures
from tui.screens.offer_dialog import DialogOffer, OfferDialog

CAPTURES: Final = ("*.pcap*", "*.cap*")
MOST_OFFERED: Final = 100


class CompareDialog(OfferDialog):
    """Returns the path of a capture, typed or chosen; None if cancelled."""

    def __init__(self, paths: Sequence[str]) -> None:
        """The paths to suggest."""
        super().__init__("Compare with capture", "a path, or part of a name below", [*map(_offer, paths)])

    def submit(self, typed: str) -> None:
        """Take what was typed, if it is a file or if no suggestion contains it; else the first suggestion."""
        path = str(Path(typed).expanduser())
        if not typed:
            self.dismiss(None)
        elif self.offers and not os.path.isfile(path):  # noqa: PTH113  # no error for odd names
            super().submit(typed)
        else:
            self.dismiss(path)


def _offer(path: str) -> DialogOffer:
    one = Path(path)
    return DialogOffer(path, clean(one.name), clean(str(one.parent)), path)


def offered(path: str) -> list[str]:
    """Return captures to compare with: those in the same folder, then recent ones."""
    one = Path(path)
    try:
        beside = sorted(str(each) for pattern in CAPTURES for each in one.parent.glob(pattern))
    except OSError:
        beside = []
    lately = [path for paths in recent_captures() for path in paths]
    found = dict.fromkeys((*beside[:MOST_OFFERED], *lately))
    return [each for each in found if Path(each) != one]

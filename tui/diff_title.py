"""The title of the diff screen: the names of both sides and their clients, and the result or the progress."""

from typing import Final

from rich.cells import cell_len
from rich.text import Text

from dissector.analysis.diff import DiffResult, DiffSide
from dissector.core.text import clean
from tui.diff_labels import shared

NAMES: Final = ("A", "B")
NARROW, WIDE = 76, 118
"""Cells of the title below which it is short, and from which on it names the clients."""
MIN_NAME: Final = 8
"""Minimum cells of a side's name."""


def diff_title(
    ends: tuple[DiffSide, DiffSide], comparison: DiffResult | None, progress: str, matched: int, width: int
) -> Text:
    """Return the title in `width` cells. `progress` stands in place of the result, if it is not empty; `matched` is how
    many pairs the user matched by hand."""
    state = progress or _result(comparison, matched, short=width < NARROW)
    clients = (comparison.a.clients, comparison.b.clients) if comparison is not None else ((), ())
    room = max(2 * MIN_NAME, width - cell_len(state) - len("A   ⇄  B ") - 2)
    names = shared([clean(side.label) for side in ends], room)
    client_names = [clean(f" {of_side[0]}") if of_side else "" for of_side in clients]
    client_names = shared(client_names, room - sum(map(cell_len, names))) if width >= WIDE else ["", ""]
    title = Text()
    for side, name in enumerate(NAMES):
        title.append("  ⇄  " if side else "").append(name, "bold reverse").append(f" {names[side]}", "bold")
        title.append(client_names[side], "dim")
    return title.append(" " * max(1, width - title.cell_len - cell_len(state))).append(state, "bold")


def _result(comparison: DiffResult | None, matched: int, *, short: bool) -> str:
    if comparison is None:
        return ""
    count = len(comparison.entries)
    words = "the same" if not count else f"{count} ≠" if short else f"{count} difference{'s' if count > 1 else ''}"
    by_hand = f" · {matched} by hand" if matched else ""
    return f"{words}{by_hand}" if short else f"{words}{by_hand} · {len(comparison.ignored)} ignored (i)"

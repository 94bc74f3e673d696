"""The groups of keys in the help and in the palette, named by what one wants to do; the ten keys that matter most."""

from typing import Final

FIND: Final = "Find"
GO: Final = "Go to"
OVERALL: Final = "See the whole capture"
LIST: Final = "Change the list"
KEEP: Final = "Mark, copy, export"
PANES: Final = "Arrange the panes"
CAPTURE: Final = "Capture"
PROGRAM: Final = "Program"
ORDER: Final = (FIND, GO, OVERALL, LIST, KEEP, PANES, CAPTURE, PROGRAM)
"""Groups that are not here stand between these and the program's."""
FIRST: Final = (
    "main.filter", "main.next_error", "main.explain", "main.open", "main.flip", "main.apply_as_filter", "main.search",
    "main.records", "main.findings", "app.palette",
)  # fmt: skip
"""The ids of the keys that a new user should know, most useful first."""


def place(group: str) -> int:
    """Return where a group stands."""
    return ORDER.index(group) if group in ORDER else ORDER.index(PROGRAM) - 1

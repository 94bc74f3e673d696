"""Which row of a capture a proxy means by a client's end of a connection and a correlation id, and how to go there."""

from collections.abc import Iterable
from typing import Final

from dissector.capture_session import Capture
from tui.screens.core_screen import CoreScreen
from tui.threads import call_on_ui

STEP: Final = 1 << 12
MOST: Final = 1 << 18
"""Rows that are looked at, the newest first: what a proxy tells of is new."""
Asked = tuple[str, int]
"""The client's end, `host:port`, and the correlation id."""


def rows_of(capture: Capture, asked: Iterable[Asked]) -> dict[Asked, int]:
    """Return the newest row of each that has one, from 0."""
    wanted, found = {*asked}, dict[Asked, int]()
    stop = len(capture)
    least = max(0, stop - MOST)
    while wanted and stop > least:
        start = max(least, stop - STEP)
        clients, numbers = capture.index.columns(["client", "correlation_id"], range(start, stop))
        for row in range(stop - 1, start - 1, -1):
            client, number = clients[row - start], numbers[row - start]
            if isinstance(client, str) and isinstance(number, int) and (client, number) in wanted:
                wanted.discard((client, number))
                found[client, number] = row
        stop = start
    return found


def go_to_row(screen: CoreScreen, asked: Asked, missing: str) -> None:
    """Go to the newest row of an exchange; say that it is `missing` if it has none. Runs in a thread."""

    def go(row: int | None) -> None:
        if row is None:
            screen.notify(missing, timeout=3, markup=False)
        elif not screen.go_to(row):
            screen.notify(f"row {row + 1:,} is hidden by the filter", timeout=3, markup=False)

    call_on_ui(screen, go, rows_of(screen.capture, [asked]).get(asked))

"""Notifications whose toast always has some time left.

Textual shows a notification that has not expired, and then asks how long it may stay. If it expires in between, as on a
busy machine, its timer has a negative interval: Textual 8.2 counts with it for ever, and the screen is dead.
"""

from dataclasses import dataclass
from typing import Final

from textual.notifications import Notification

SHORTEST: Final = 0.1
"""Seconds that a toast is shown at least."""


@dataclass
class TimedNotification(Notification):
    """A notification that expires as any other."""

    @property
    def time_left(self) -> float:
        """Seconds for which its toast is to be shown."""
        return max(super().time_left, SHORTEST)

    @property
    def has_expired(self) -> bool:
        """Whether no toast is to be shown for it."""
        return super().time_left <= 0

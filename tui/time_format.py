"""The ways to tell a row's time, without a screen."""

from datetime import UTC, datetime
from enum import Enum
from typing import Final

from dissector.core.text import seconds

REFERENCE: Final = "*REF*"
_SECOND: Final = 1_000_000_000


class TimeFormat(Enum):
    """How the Time column tells it; the value is what the configuration calls it."""

    START = "start"
    PREVIOUS = "previous"
    SINCE_REFERENCE = "reference"
    LOCAL = "local"
    UTC = "utc"
    EPOCH = "epoch"

    @property
    def words(self) -> str:
        """What it is, for people."""
        return _WORDS[self]

    @property
    def width(self) -> int:
        """Cells it takes."""
        return {TimeFormat.EPOCH: 17, TimeFormat.LOCAL: 15, TimeFormat.UTC: 15}.get(self, 11)

    @property
    def next(self) -> "TimeFormat":
        """The one after it, round and round."""
        formats = list(TimeFormat)
        return formats[(formats.index(self) + 1) % len(formats)]


_WORDS: Final = {
    TimeFormat.START: "seconds since the capture's first packet",
    TimeFormat.PREVIOUS: "seconds since the row above",
    TimeFormat.SINCE_REFERENCE: "seconds since the reference",
    TimeFormat.LOCAL: "time of day here",
    TimeFormat.UTC: "time of day, UTC",
    TimeFormat.EPOCH: "seconds since 1970",
}


def time_text(time_ns: int, form: TimeFormat, since_ns: int) -> str:
    """A time; `since_ns` is what a relative format counts from. Nanoseconds since 1970."""
    if form is TimeFormat.EPOCH:
        return seconds(time_ns)
    if form in (TimeFormat.LOCAL, TimeFormat.UTC):
        whole, rest = divmod(time_ns, _SECOND)
        try:
            moment = datetime.fromtimestamp(whole, UTC)
            day = (moment if form is TimeFormat.UTC else moment.astimezone()).strftime("%H:%M:%S")
        except (OverflowError, OSError, ValueError):  # no calendar has it
            return seconds(time_ns)
        return f"{day}.{rest // 1_000:06d}"
    return seconds(time_ns - since_ns)


def date_text(time_ns: int, form: TimeFormat) -> str:
    """The date that goes with a time of day, its zone with it; empty for what needs none."""
    if form not in (TimeFormat.LOCAL, TimeFormat.UTC):
        return ""
    try:
        moment = datetime.fromtimestamp(time_ns // _SECOND, UTC)
        moment = moment if form is TimeFormat.UTC else moment.astimezone()
    except (OverflowError, OSError, ValueError):
        return ""
    return moment.strftime("%Y-%m-%d %Z")

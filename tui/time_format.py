"""The formats of a row's time, without a screen."""

from datetime import UTC, datetime
from enum import Enum
from typing import Final

from dissector.core.text import seconds
from dissector.core.times import SECOND

REFERENCE: Final = "*REF*"


class TimeFormat(Enum):
    """The format of the Time column; the value is its name in the configuration."""

    START = "start"
    PREVIOUS = "previous"
    SINCE_REFERENCE = "reference"
    LOCAL = "local"
    UTC = "utc"
    EPOCH = "epoch"

    @property
    def words(self) -> str:
        """The format in words."""
        return _WORDS[self]

    @property
    def width(self) -> int:
        """Its width in cells."""
        return {TimeFormat.EPOCH: 17, TimeFormat.LOCAL: 15, TimeFormat.UTC: 15}.get(self, 11)

    @property
    def next(self) -> "TimeFormat":
        """The next one, cyclically."""
        formats = list(TimeFormat)
        return formats[(formats.index(self) + 1) % len(formats)]


_WORDS: Final = {
    TimeFormat.START: "seconds since the capture's first packet",
    TimeFormat.PREVIOUS: "seconds since the previous row",
    TimeFormat.SINCE_REFERENCE: "seconds since the reference",
    TimeFormat.LOCAL: "local time of day",
    TimeFormat.UTC: "UTC time of day",
    TimeFormat.EPOCH: "seconds since 1970",
}


def time_text(time_ns: int, form: TimeFormat, since_ns: int) -> str:
    """Return a time as text; `since_ns` is what a relative format counts from. Nanoseconds since 1970."""
    if form is TimeFormat.EPOCH:
        return seconds(time_ns)
    if form in (TimeFormat.LOCAL, TimeFormat.UTC):
        whole, rest = divmod(time_ns, SECOND)
        try:
            moment = datetime.fromtimestamp(whole, UTC)
            day = (moment if form is TimeFormat.UTC else moment.astimezone()).strftime("%H:%M:%S")
        except (OverflowError, OSError, ValueError):  # beyond any calendar
            return seconds(time_ns)
        return f"{day}.{rest // 1_000:06d}"
    return seconds(time_ns - since_ns)


def date_text(time_ns: int, form: TimeFormat) -> str:
    """Return the date and the zone of a time of day; empty for other formats."""
    if form not in (TimeFormat.LOCAL, TimeFormat.UTC):
        return ""
    try:
        moment = datetime.fromtimestamp(time_ns // SECOND, UTC)
        moment = moment if form is TimeFormat.UTC else moment.astimezone()
    except (OverflowError, OSError, ValueError):
        return ""
    return moment.strftime("%Y-%m-%d %Z")

"""Points in time that can be typed to go to: since the start of the capture, from a row on, or by the clock.

Invariant: what is no such text is `None`, never a guess; what looks like one and is wrong is a `CommandError`.
"""

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Final

from dissector.core.text import clean
from dissector.core.times import NANOSECONDS, SECOND, fraction_ns
from tui.command_line import CommandError

_SPAN: Final = re.compile(r"(?P<sign>[+-]?)(?P<number>\d{1,12}(?:\.\d{1,9})?)(?P<unit>[a-zµ]*)")
_CLOCK: Final = re.compile(
    r"(?:(?P<date>\d{4}-\d\d-\d\d)[T ])?(?P<clock>\d{1,2}:\d\d(?::\d\d(?:\.\d{1,9})?)?)(?P<utc>Z?)"
)


def time_place(text: str, start_ns: int, here_ns: int, *, utc: bool) -> int | None:
    """The time that a text means, in nanoseconds since 1970; None if it is none: ``7.3`` and ``250ms`` since the start
    of the capture, ``+2s`` and ``-100ms`` from here on, ``12:04:31.5`` by the clock, with or without a date. A clock
    without a date is the first such time at or after the start; `utc` says whether it is UTC or local time, as ``Z``
    does. Raises `CommandError`."""
    span = _SPAN.fullmatch(text)
    if span is not None:
        return _since(span, start_ns, here_ns)
    clock = _CLOCK.fullmatch(text)
    return None if clock is None else _by_clock(clock, start_ns, utc=utc or bool(clock["utc"]))


def _since(span: re.Match[str], start_ns: int, here_ns: int) -> int | None:
    if not span["unit"] and (span["sign"] or "." not in span["number"]):
        return None  # a number of rows
    if span["unit"] and span["unit"] not in NANOSECONDS:
        raise CommandError(clean(f"unknown unit {span['unit']!r}: {', '.join(NANOSECONDS)}"))
    ns = round(Fraction(span["number"]) * NANOSECONDS[span["unit"] or "s"])
    return {"": start_ns + ns, "+": here_ns + ns, "-": here_ns - ns}[span["sign"]]


def _by_clock(clock: re.Match[str], start_ns: int, *, utc: bool) -> int:
    seconds, _, fraction = clock["clock"].partition(".")
    try:
        start = datetime.fromtimestamp(start_ns // SECOND, UTC)
        day = clock["date"] or (start if utc else start.astimezone()).strftime("%Y-%m-%d")
        moment = datetime.fromisoformat(f"{day} {seconds.zfill(8 if seconds.count(':') > 1 else 5)}")
        moment = moment.replace(tzinfo=UTC) if utc else moment.astimezone()
        time_ns = round(moment.timestamp()) * SECOND + fraction_ns(fraction)
        if not clock["date"] and time_ns < start_ns:
            time_ns = round((moment + timedelta(days=1)).timestamp()) * SECOND + fraction_ns(fraction)
        return time_ns
    except (OverflowError, OSError, ValueError):
        raise CommandError(clean(f"{clock[0]!r} is not a time")) from None

"""The finding that a message, which does not fit its layout, has another one to its last byte.

Invariant: work is bounded by connection, API, version and side: after `MOST_TRIED` messages that fit nothing no more of
them are searched. What fit the last one is tried first, so that a peer that always makes the same mistake costs one
walk a message.
"""

from collections import OrderedDict
from typing import Final

from dissector.core.finding import Finding, Severity
from dissector.exchange.info_column import READS_AS
from dissector.protocol.exact_readings import ExactReading, exact_readings, fits
from dissector.protocol.message import MessageLayout
from dissector.protocol.schema.loader import api_name

MOST_TRIED: Final = 8
"""Messages of a connection, an API, a version and a side that are searched without success."""
MOST_KINDS: Final = 4_096
Kind = tuple[int, int, int, bool]
"""Connection, API, version, and whether it is a request."""


class _Tried:
    """What was tried of a kind of messages."""

    def __init__(self) -> None:
        self.failed = 0
        self.last: tuple[ExactReading, ...] = ()


class ExactReadings:
    """Of one capture."""

    def __init__(self) -> None:
        self._tried: OrderedDict[Kind, _Tried] = OrderedDict()

    def finding(self, kind: Kind, data: bytes, size: int, layout: MessageLayout) -> Finding | None:
        """Return the finding of a message that does not fit `layout`; None if it fits no other one either."""
        tried = self._tried.get(kind)
        if tried is None:
            tried = self._tried[kind] = _Tried()
            if len(self._tried) > MOST_KINDS:
                self._tried.popitem(last=False)
        found = tuple(each for each in tried.last if size == len(data) and fits(data, layout, each))
        if not found and tried.failed < MOST_TRIED:
            found = exact_readings(data, size, layout, kind[1])
        if not found:
            tried.failed += 1
            return None
        tried.last = found
        return reads_as(found, kind[1], is_request=kind[3])


def reads_as(found: tuple[ExactReading, ...], key: int, *, is_request: bool) -> Finding:
    """Return the finding of a message that has these layouts."""
    words = ", or as ".join(f"{api_name(key)} {each.words}" for each in found)
    return Finding(READS_AS, Severity.NOTE, f"reads exactly as {words}", "request" if is_request else "response")

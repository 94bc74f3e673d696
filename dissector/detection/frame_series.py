"""Heads of frames in sequence: whether they are consistent, as they come, at the same cost for each."""

from typing import Final

_SERIES: Final = 3
"""Responses in a row that are recognized on any port."""
_LONG_SERIES: Final = 6
"""The same where they are all in one segment."""


class RequestSeries:
    """Any requests can follow each other."""

    state: Final = 0

    def add(self, head: bytes) -> bool:
        return True

    def is_consistent(self, ends: int) -> bool:
        return True


class ResponseSeries:
    """Correlation ids rise from response to response, by at most `step`."""

    def __init__(self, step: int, *, known: bool) -> None:
        self._step = step
        self._known = known
        """Whether any number of responses is enough, as the connection is known to be Kafka."""
        self._count = 0
        self._last = 0
        self._rise = True

    @property
    def state(self) -> int:
        return min(self._count, _LONG_SERIES) << 1 | self._rise

    def add(self, head: bytes) -> bool:
        identifier = int.from_bytes(head[4:8], "big")
        self._rise &= not self._count or 0 < identifier - self._last <= self._step
        self._last = identifier
        self._count += 1
        return self._rise

    def is_consistent(self, ends: int) -> bool:
        """Whether ids rise, in enough responses to rule out chance: three, if they end more than one segment. Three in
        one segment are found among the small integers of which other protocols are full."""
        return self._rise and (self._known or self._count >= (_SERIES if ends > 1 else _LONG_SERIES))


class UnknownSeries(ResponseSeries):
    """The same where ZooKeeper's frames, which have rising ids too, must be distinguished from Kafka's."""

    def __init__(self, step: int) -> None:
        super().__init__(step, known=False)
        self._has_path = False
        self._are_replies = True
        self._transaction = 1

    @property
    def state(self) -> int:
        return super().state << 2 | self._has_path << 1 | self._are_replies

    def add(self, head: bytes) -> bool:
        """ZooKeeper's requests have an operation and a path behind the id; its replies a transaction id, which is never
        0 and rises, and an error, mostly 0."""
        self._has_path |= head[16:17] == b"/" and head[12:14] == bytes(2)
        transaction = int.from_bytes(head[8:16], "big")
        self._are_replies &= transaction >= self._transaction and head[16:20] == bytes(4)
        self._transaction = transaction
        return super().add(head) and not self._has_path

    def is_consistent(self, ends: int) -> bool:
        return super().is_consistent(ends) and not self._has_path and not self._are_replies

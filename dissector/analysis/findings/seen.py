"""An exchange as finders see it that look into bodies."""

from collections.abc import Callable

from dissector.analysis.findings.produce import Sent, sent
from dissector.protocol.message import Values


class Seen:
    """An exchange, looked into. Its request is read when a finder first asks for it."""

    __slots__ = (
        "_batches", "_read", "_request", "answered_ns", "asked_ns", "connection", "errors", "key", "response", "row",
        "version",
    )  # fmt: skip

    def __init__(
        self, row: int, connection: int, key: int, version: int, asked_ns: int, answered_ns: int,
        read: Callable[[], Values], response: Values, errors: list[int],
    ) -> None:  # fmt: skip
        self.row = row
        self.connection = connection
        self.key = key
        self.version = version
        self.asked_ns = asked_ns
        self.answered_ns = answered_ns
        """0 where there is no response."""
        self._read = read
        self._request: Values | None = None
        self._batches: list[Sent] | None = None
        self.response = response
        """Empty where there is none, or it could not be read."""
        self.errors = errors
        """Error codes of the response that are not 0."""

    @property
    def request(self) -> Values:
        """Empty where it could not be read."""
        if self._request is None:
            self._request = self._read()
        return self._request

    @property
    def batches(self) -> list[Sent]:
        """What a Produce request sends."""
        if self._batches is None:
            self._batches = sent(self.request)
        return self._batches

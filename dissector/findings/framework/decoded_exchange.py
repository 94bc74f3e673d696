"""An exchange as finders see it that look into bodies."""

from collections.abc import Callable

from dissector.findings.framework.produce_batches import Sent, only_batch, sent
from dissector.protocol.message import Values, read, request_layout

Place = tuple[int, int]
"""The packet with which a row begins, and the stream offset of its first byte: the order of the rows of a capture."""


class Seen:
    """An exchange, looked into. Its request is read when a finder first asks for it."""

    __slots__ = (
        "_batches", "_frame", "_request", "answered_ns", "asked_ns", "connection", "errors", "key", "packet",
        "response", "row", "start", "version",
    )  # fmt: skip

    def __init__(
        self, row: int, connection: int, packet: int, start: int, key: int, version: int, asked_ns: int,
        answered_ns: int, frame: Callable[[], tuple[bytes, int]], response: Values, errors: list[int],
    ) -> None:  # fmt: skip
        self.row = row
        self.connection = connection
        self.packet = packet
        self.start = start
        self.key = key
        self.version = version
        self.asked_ns = asked_ns
        self.answered_ns = answered_ns
        """0 where there is no response."""
        self._frame = frame
        """The request's bytes, and how many come before the first hole."""
        self._request: Values | None = None
        self._batches: list[Sent] | None = None
        self.response = response
        """Empty where there is none, or it could not be read."""
        self.errors = errors
        """Error codes of the response that are not 0."""

    @property
    def place(self) -> Place:
        """Where it stands in the capture."""
        return self.packet, self.start

    @property
    def request(self) -> Values:
        """Empty where it could not be read."""
        if self._request is None:
            data, whole = self._frame()
            self._request = read(data, request_layout(self.key, self.version, data), whole).body
        return self._request

    @property
    def batches(self) -> list[Sent]:
        """What a Produce request sends."""
        if self._batches is None:
            data, whole = self._frame()
            only = only_batch(data, self.version) if whole == len(data) else None
            self._batches = sent(self.request) if only is None else [only]
        return self._batches

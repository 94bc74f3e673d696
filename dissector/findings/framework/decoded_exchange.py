"""An exchange for detectors that need more than the index."""

from collections.abc import Callable

from dissector.protocol.message import Values, read, request_layout

RowPosition = tuple[int, int]
"""The packet with a row's first byte, and the stream offset of that byte: they order the rows of a capture."""


class DecodedExchange:
    """An exchange, decoded. Its request is read when a detector first needs it."""

    __slots__ = (
        "_frame", "_request", "api_key", "connection", "errors", "packet", "request_ns", "response",
        "response_ns", "row", "start", "version",
    )  # fmt: skip

    def __init__(
        self, row: int, connection: int, packet: int, start: int, api_key: int, version: int, request_ns: int,
        response_ns: int, frame: Callable[[], tuple[bytes, int]], response: Values, errors: list[int],
    ) -> None:  # fmt: skip
        self.row = row
        self.connection = connection
        self.packet = packet
        self.start = start
        self.api_key = api_key
        self.version = version
        self.request_ns = request_ns
        self.response_ns = response_ns
        """0 if there is no response."""
        self._frame = frame
        """Returns the request's bytes, and how many precede the first gap."""
        self._request: Values | None = None
        self.response = response
        """The response's body. Empty if there is none, or it could not be read."""
        self.errors = errors
        """Error codes of the response that are not 0."""

    @property
    def position(self) -> RowPosition:
        """Its position in the capture."""
        return self.packet, self.start

    @property
    def request(self) -> Values:
        """The request's body. Empty if it could not be read, or has bytes behind it."""
        if self._request is None:
            data, contiguous = self._frame()
            decoded = read(data, request_layout(self.api_key, self.version, data), contiguous)
            self._request = {} if decoded.rest else decoded.body
        return self._request

"""An exchange for detectors that need more than the index."""

from collections.abc import Callable
from typing import Final

from dissector.protocol.message import Values

RowPosition = tuple[int, int]
"""The packet with a row's first byte, and the stream offset of that byte: they order the rows of a capture."""

FramePlace = tuple[int, int, int]
"""The number of a message's frame, its address if it is contiguous, else a negative number, and its size."""
ResponseBody = tuple[Values, list[int]]
"""A response's body, and its error codes that are not 0."""
_NO_ERRORS: Final[list[int]] = []


class DecodedExchange:
    """An exchange, decoded. Each of its messages is read when a detector first needs it."""

    __slots__ = (
        "_has_errors", "_read_request", "_read_response", "_request", "_request_frame", "_response", "_response_frame",
        "api_key", "connection", "packet", "request_ns", "response_ns", "row", "start",
        "version", "wait_ns",
    )  # fmt: skip

    def __init__(
        self, row: int, connection: int, packet: int, start: int, api_key: int, version: int, request_ns: int,
        response_ns: int, wait_ns: int, request_frame: FramePlace, response_frame: FramePlace,
        read_request: Callable[[int, int, FramePlace], Values],
        read_response: Callable[[int, int, FramePlace], ResponseBody], *, has_errors: bool,
    ) -> None:  # fmt: skip
        """The functions read a body by API key, version and place. `has_errors` is false if it is known already that
        the response has none."""
        self.row = row
        self.connection = connection
        self.packet = packet
        self.start = start
        self.api_key = api_key
        self.version = version
        self.request_ns = request_ns
        self.response_ns = response_ns
        """0 if there is no response."""
        self.wait_ns = wait_ns
        """From the last byte of the request to the first one of the response; of no meaning without one."""
        self._request_frame = request_frame
        self._response_frame = response_frame
        self._read_request = read_request
        self._read_response = read_response
        self._has_errors = has_errors
        self._request: Values | None = None
        self._response: ResponseBody | None = None

    @property
    def position(self) -> RowPosition:
        """Its position in the capture."""
        return self.packet, self.start

    @property
    def response(self) -> Values:
        """The response's body. Empty if there is none, or it could not be read."""
        return self._whole_response()[0]

    @property
    def errors(self) -> list[int]:
        """Error codes of the response that are not 0, each as often as it occurs."""
        return self._whole_response()[1] if self._has_errors else _NO_ERRORS

    def _whole_response(self) -> ResponseBody:
        if self._response is None:
            self._response = self._read_response(self.api_key, self.version, self._response_frame)
        return self._response

    @property
    def request(self) -> Values:
        """The request's body. Empty if it could not be read, or has bytes behind it."""
        if self._request is None:
            self._request = self._read_request(self.api_key, self.version, self._request_frame)
        return self._request

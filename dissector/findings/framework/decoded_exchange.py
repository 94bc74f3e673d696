"""An exchange, and bodies of single messages, for detectors that need more than the index.

A message that does not fit its layout has no body: its values mean nothing.
"""

from collections.abc import Callable
from typing import Final, cast

from dissector.protocol.codec.structs import structs_with
from dissector.protocol.message import Values, read
from dissector.protocol.message_layout import MessageLayout, request_layout, response_layout
from dissector.protocol.schema.field_names import ERROR_CODES

RowPosition = tuple[int, int]
"""The packet with a row's first byte, and the stream offset of that byte: they order the rows of a capture."""

FramePlace = tuple[int, int, int]
"""The number of a message's frame, its address if it is contiguous, else a negative number, and its size."""
ReadFrame = Callable[[int], tuple[bytes, int]]
"""Returns the bytes of a frame, and how many precede the first gap."""
TopicName = Callable[[Values], str]
"""Returns the name of the topic that a structure names."""
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


NO_RESPONSE: Final[ResponseBody] = ({}, [])


def request_body(key: int, version: int, data: bytes, contiguous: int) -> Values:
    """Return the body of a request, of which so many bytes precede the first gap; empty if it could not be read, or has
    bytes behind it."""
    return read(data, request_layout(key, version, data), contiguous).fitting_body


def response_body(key: int, version: int, data: bytes, contiguous: int) -> ResponseBody:
    """Return the body of a response to a request of that API and version, and its error codes."""
    layout = response_layout(key, version, data)
    body = read(data, layout, contiguous).fitting_body
    return (body, _errors(layout, body)) if body else NO_RESPONSE


def elements(of: Values, name: str) -> list[Values]:
    """Return the structures of an array; none if it is null, or not there."""
    return cast(list[Values], of.get(name) or [])


def _errors(layout: MessageLayout, body: Values) -> list[int]:
    """Return the error codes that are not 0, each as often as it occurs."""
    found: list[int] = []
    for struct in structs_with(layout, body, ERROR_CODES):
        for name in ERROR_CODES:
            code = struct.get(name)
            if code and isinstance(code, int):
                found.append(code)
    return found

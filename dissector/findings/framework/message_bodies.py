"""Bodies of single messages for detectors. One that does not fit its layout has none: its values mean nothing."""

from typing import Final

from dissector.exchange.info_column import ERROR_CODES
from dissector.findings.framework.decoded_exchange import ResponseBody
from dissector.protocol.codec.structs import structs_with
from dissector.protocol.message import MessageLayout, Values, read, request_layout, response_layout

NO_RESPONSE: Final[ResponseBody] = ({}, [])


def request_body(key: int, version: int, data: bytes, contiguous: int) -> Values:
    """Return the body of a request, of which so many bytes precede the first gap; empty if it could not be read, or has
    bytes behind it."""
    decoded = read(data, request_layout(key, version, data), contiguous)
    return {} if decoded.rest else decoded.body


def response_body(key: int, version: int, data: bytes, contiguous: int) -> ResponseBody:
    """Return the body of a response to a request of that API and version, and its error codes."""
    layout = response_layout(key, version, data)
    decoded = read(data, layout, contiguous)
    return NO_RESPONSE if decoded.rest else (decoded.body, _errors(layout, decoded.body))


def _errors(layout: MessageLayout, body: Values) -> list[int]:
    """Return the error codes that are not 0, each as often as it occurs."""
    found: list[int] = []
    for struct in structs_with(layout, body, ERROR_CODES):
        for name in ERROR_CODES:
            code = struct.get(name)
            if code and isinstance(code, int):
                found.append(code)
    return found

"""The Python API: what `import dissector` offers."""

from collections.abc import Sequence
from os import PathLike, fspath

from dissector.capture_file import Capture
from dissector.protocol.message import PREFIX, request_shape, response_shape
from dissector.session.exchange import Message


def open(*paths: str | PathLike[str]) -> Capture:  # noqa: A001  # as in `dissector.open`, like `gzip.open`
    """Open captures (pcap, pcapng; ``-`` is standard input) as one. Raises `capture.CaptureError`."""
    names: Sequence[str] = [fspath(path) for path in paths]
    return Capture(names)


def decode_request(data: bytes) -> Message:
    """One request frame, its 4-byte size prefix included. Damage is told in `findings`, never raised."""
    key = int.from_bytes(data[PREFIX : PREFIX + 2], "big", signed=True)
    version = int.from_bytes(data[PREFIX + 2 : PREFIX + 4], "big", signed=True)
    return Message(0, len(data), data, len(data), request_shape(key, version))


def decode_response(data: bytes, *, api_key: int, api_version: int) -> Message:
    """One response frame, its 4-byte size prefix included, to a request of that API and version."""
    return Message(0, len(data), data, len(data), response_shape(api_key, api_version, data))

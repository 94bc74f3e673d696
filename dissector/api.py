"""The Python API: what `import dissector` offers."""

from collections.abc import Sequence
from os import PathLike, fspath

from dissector.capture_file import Capture
from dissector.protocol.embedded.context import NOTHING_KNOWN
from dissector.protocol.inference.evidence import NOTHING
from dissector.protocol.inference.verdict import judge
from dissector.protocol.message import PREFIX, Shape, request_shape, response_shape
from dissector.session.exchange import Message
from dissector.session.verdicts import shape


def open(*paths: str | PathLike[str], show_secrets: bool = False) -> Capture:  # noqa: A001  # like `gzip.open`
    """Open captures (pcap, pcapng; ``-`` is standard input) as one. Raises `capture.CaptureError`.

    Passwords, tokens and keys are masked unless asked for, here and below.
    """
    names: Sequence[str] = [fspath(path) for path in paths]
    return Capture(names, show_secrets=show_secrets)


def decode_request(data: bytes, *, show_secrets: bool = False) -> Message:
    """One request frame, its 4-byte size prefix included. Damage is told in `findings`, never raised."""
    key = int.from_bytes(data[PREFIX : PREFIX + 2], "big", signed=True)
    version = int.from_bytes(data[PREFIX + 2 : PREFIX + 4], "big", signed=True)
    return _message(data, request_shape(key, version, data), show_secrets=show_secrets)


def decode_response(
    data: bytes, *, api_key: int | None = None, api_version: int | None = None, show_secrets: bool = False
) -> Message:
    """One response frame, its 4-byte size prefix included, to a request of that API and version.

    Without both it is decoded by inference: `findings` then says as what, how sure that is, and what else it may be.
    """
    if api_key is None and api_version is None:
        return _message(data, shape(judge(data, len(data), len(data), NOTHING)), show_secrets=show_secrets)
    if api_key is None or api_version is None:
        raise TypeError("api_key and api_version are given together, or not at all")
    return _message(data, response_shape(api_key, api_version, data), show_secrets=show_secrets)


def _message(data: bytes, shape: Shape, *, show_secrets: bool) -> Message:
    return Message.of_frame(0, len(data), data, len(data), shape, NOTHING_KNOWN, show_secrets=show_secrets)

"""Opens captures, whatever a program has them in: files by name, open files, bytes, packets of dpkt's or scapy's."""

import os
import tempfile
from collections.abc import Iterable
from io import UnsupportedOperation
from os import PathLike, fspath
from typing import IO, Any, Final

from dissector.api.arguments import checked_paths, checked_ports
from dissector.api.capture import Capture
from dissector.capture import CaptureError
from dissector.capture.files import OpenFile
from dissector.capture.packet_objects import PacketObjects
from dissector.capture_session import Capture as Session
from dissector.capture_session.stage_pipeline import Source
from dissector.detection.decode_as import DecodeAs, DecodeAsError, parse_decode_as
from dissector.records.record import PLAIN_OPENER
from dissector.records.values.opener import ValueOpener

_PIECE: Final = 1 << 20
Openable = str | PathLike[str] | bytes | bytearray | memoryview | IO[bytes] | Iterable[Any]
"""What `open` takes."""


def open(  # noqa: A001  # like `gzip.open`
    *sources: Openable,
    keylog: str | PathLike[str] | Iterable[str | PathLike[str]] = (),
    ports: Iterable[int] = (),
    decode_as: str | Iterable[str] = (),
    link_type: int | None = None,
    show_secrets: bool = False,
    schemas: str | PathLike[str] | None = None,
    resolve: bool = False,
) -> Capture:
    """Open one or more sources as one capture, in order of time. Reading begins when data is first needed.

    A source is the path of a file (packets, text with bytes in any form, one of Kafka's own files; ``-`` is standard
    input), an open binary file, `bytes` with the content of a file, or packets: anything that yields ``(time, bytes)``,
    with time in seconds, such as `dpkt.pcap.Reader` and `dpkt.pcapng.Reader`, or scapy packets. `link_type` is the
    LINKTYPE_ number of such packets if their reader does not provide it; the default is Ethernet.

    `keylog` names files with TLS secrets (SSLKEYLOGFILE). `ports` are treated as brokers' ports, whatever the bytes
    look like. `decode_as` says what protocol connections have, as ``--decode-as`` does: ``tcp.port==19092,kafka``,
    ``10.0.0.5:19092,none``. Passwords, tokens and keys are masked unless `show_secrets`. `schemas` is for decoding
    record values: a folder with Avro and Protobuf schemas named by id or by subject (``7.avsc``,
    ``orders-value.proto``), or the URL of a schema registry; it needs the extra `schemas`. With `resolve`, this
    machine's resolver, which may use the network, looks up names for the fields `host`, `client.host` and `server.host`
    that are not in the capture. Raises `CaptureError` with one plain line.

    >>> with dissector.open("pcaps/java.pcapng") as capture:
    ...     len(capture), capture[0].api
    (60, 'ApiVersions')
    """
    if not sources:
        raise TypeError("open() needs a source: a path, a binary file, bytes, or packets")
    key_logs = checked_paths(keylog, "open(keylog")
    found = [_source(each, link_type) for each in sources]
    opener = PLAIN_OPENER if schemas is None else _opener(*checked_paths(schemas, "open(schemas"))
    return Capture(Session(
        found, ports=frozenset(checked_ports(ports, "open(ports")), decode_as=_choices(decode_as),
        key_logs=key_logs, show_secrets=show_secrets, resolves=resolve, opener=opener,
    ))  # fmt: skip


def _choices(given: str | Iterable[str]) -> list[DecodeAs]:
    """Return what connections are said to be. Raises `CaptureError`."""
    try:
        return [parse_decode_as(each) for each in ([given] if isinstance(given, str) else given)]
    except DecodeAsError as error:
        raise CaptureError(f"decode_as: {error}") from None


def _opener(schemas: str) -> ValueOpener:
    """Return what opens values by schemas. Raises `CaptureError`."""
    from dissector.records.values.schemas import SchemaLocationError, opener_with

    try:
        return opener_with(schemas)
    except SchemaLocationError as error:
        raise CaptureError(str(error)) from None


def _source(given: Openable, link_type: int | None) -> Source:
    """Return a source as captures know it. Raises `TypeError` for what is none."""
    if isinstance(given, str | PathLike):
        return fspath(given)
    if isinstance(given, bytes | bytearray | memoryview):
        return OpenFile("bytes", _copied([bytes(given)]))
    if hasattr(given, "read"):
        return _open_file(given)
    if isinstance(given, list | tuple) and any(isinstance(each, str | PathLike) for each in given):
        raise TypeError("open() takes several files as several arguments: open(*paths)")
    if isinstance(given, Iterable):
        return PacketObjects(given, link_type)
    raise TypeError(f"{type(given).__name__} is not a capture: give a path, a binary file, bytes, or packets")


def _open_file(file: Any) -> OpenFile:
    """Return an open file, from where it is read on: a copy, if it is no file of the system or not at its beginning."""
    name = str(getattr(file, "name", "file"))
    try:
        is_whole = file.seekable() and file.tell() == 0
        if is_whole and os.fstat(file.fileno()).st_size:
            return OpenFile(name, file)
    except (UnsupportedOperation, AttributeError, OSError):
        pass
    return OpenFile(name, _copied(iter(lambda: _read(file), b"")))


def _read(file: Any) -> bytes:
    data = file.read(_PIECE)
    if not isinstance(data, bytes):
        raise TypeError("a capture is a binary file: open it with mode 'rb'")
    return data


def _copied(pieces: Iterable[bytes]) -> IO[bytes]:
    """Return a file without a name, in memory where the system has such."""
    made: IO[bytes]
    if hasattr(os, "memfd_create"):
        made = os.fdopen(os.memfd_create("kdissect"), "w+b", buffering=0)
    else:
        made = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # it is closed with its last reader
    for piece in pieces:
        made.write(piece)
    made.seek(0)
    return made

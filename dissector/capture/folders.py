"""A folder as captures: its files that begin as captures do, in the order of their names.

A folder that tcpdump or Wireshark writes to often has other files beside the captures (key logs, notes, logs of
brokers), and text that has bytes in it can be meant or not. Only pcap and pcapng, compressed or not, are taken from a
folder; any other file can be named.
"""

import os
import stat
from typing import Final

from dissector.capture.compression import MAGIC_SIZE, Decompression, FileDecompressionError, recognize_codec
from dissector.capture.errors import CaptureError
from dissector.capture.pcap import MAGICS
from dissector.capture.pcapng_blocks import SECTION
from dissector.core.files import is_directory
from dissector.core.text import os_reason

_STEP: Final = 1 << 14
_MOST_STEPS: Final = 64
"""Steps of a compressed file that are read for the first bytes of its contents: a block of bzip2 is 900 kB."""
_MAGICS: Final = frozenset((*MAGICS, SECTION.to_bytes(4, "big")))
_UNREADABLE: Final = (OSError, FileDecompressionError)


def captures_in(folder: str) -> list[str]:
    """Return the paths of the captures in a folder, without those in folders inside it, and without hidden files: one
    may be what a command is just writing. Raises `CaptureError` if there are none, or the folder can't be read."""
    try:
        paths = sorted(each.path for each in os.scandir(folder) if each.is_file() and not each.name.startswith("."))
    except OSError as error:
        raise CaptureError(f"{folder}: {os_reason(error)}") from None
    found = [path for path in paths if _is_capture(path)]
    if not found and has_tables(folder):
        raise CaptureError(
            f"{folder}: a folder of tables, not of captures; the commands show, stats, diff and open read both"
        )
    if not found:
        raise CaptureError(f"{folder}: a folder without captures or tables")
    return found


def has_tables(folder: str) -> bool:
    """Return whether a folder has tables that `ingest` wrote: one of them is `captures`."""
    return is_directory(f"{folder}/captures")


def _is_capture(path: str) -> bool:
    """Return whether a file begins as a capture; False if it can't be read, as nobody named it."""
    try:
        return _first_bytes(path) in _MAGICS
    except _UNREADABLE:
        return False


def _first_bytes(path: str) -> bytes:
    """Return the first four bytes of a file's contents. Raises one of `_UNREADABLE`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        head = file.read(_STEP)
        codec = recognize_codec(head[:MAGIC_SIZE])
        if codec is None:
            return head[:4]
        contents, decompression = b"", Decompression(codec)
        for _ in range(_MOST_STEPS):
            for piece in decompression.feed(head):
                contents += piece[:4]
                if len(contents) >= 4:
                    return contents[:4]
            head = file.read(_STEP)
    return contents

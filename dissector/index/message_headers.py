"""Request and response headers of a whole batch of frames at once.

Request header: api_key INT16, api_version INT16, correlation_id INT32, client_id NULLABLE_STRING with a two-byte length
in every version (KIP-482 left it so), but for ControlledShutdown v0, which is older than client ids and has none;
response header: correlation_id INT32. Both follow the size prefix.
"""

from enum import IntEnum
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8
from dissector.core.store import Store
from dissector.index.frame_table import FrameTable
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.embedded.secrets import is_client_id, may_hold_secrets
from dissector.protocol.kernel.json_messages import join
from dissector.protocol.kernel.shredding import numbered
from dissector.protocol.masking import NEWER
from dissector.protocol.records.batch import MASK
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import apis

REQUEST_HEAD_SIZE: Final = 14
RESPONSE_HEAD_SIZE: Final = 8
NO_CLIENT_ID: Final = -1
"""The length of a null client id."""
SHORT_CLIENT_ID: Final = 256
"""Bytes up to which ids are read in columns; longer ones are read one by one."""
LONG_CLIENT_IDS: Final = 8 << 20
"""Bytes of long ids that are kept whole. Later ones keep their first `SHORT_CLIENT_ID` bytes and a mark."""


class _Trust(IntEnum):
    """Which client ids of a request are believed to be one."""

    ANY = 0
    """Those without a NUL: numbers of other messages have some."""
    TEXT = 1
    """Those without control characters: the request may have a secret behind the id."""
    NONE = 2
    """None: by its length the id runs past the request, or no API ever had such a version."""


def _is_believed(raw: bytes, trust: int) -> bool:
    if trust == _Trust.TEXT:
        return is_client_id(raw.decode("utf-8", "surrogateescape"))
    return trust == _Trust.ANY and 0 not in raw


class RequestHeaders(NamedTuple):
    """Header fields of requests, `(n,)` each."""

    api_key: Int64
    version: Int64
    correlation_id: Int64
    client_id: Int64
    """Number in `ClientIds`."""
    end: Int64
    """Offset in the frame of the first byte behind the client id."""


class ClientIds:
    """Numbers for client ids; 0 is null."""

    def __init__(self) -> None:
        self.texts: list[str | None] = [None]
        self._known: dict[bytes, int] = {}
        self._long_bytes = 0
        """Bytes of the long ids that were kept."""

    def number(self, raw: bytes, trust: int) -> int:
        """Return the number of a client id, a new one for a new id. Of one that is not to be trusted only the length
        stays, of a long one its first bytes: it may be what a secret became in a damaged request."""
        if not _is_believed(raw, trust):
            raw = MASK * min(len(raw), SHORT_CLIENT_ID)
        number = self._known.get(raw)
        if number is None:
            raw = self._bounded(raw)
            number = self._known.setdefault(raw, len(self.texts))
            if number == len(self.texts):
                self.texts.append(raw.decode("utf-8", "surrogateescape"))
        return number

    def _bounded(self, raw: bytes) -> bytes:
        """Return a new id whole, or cut and marked so if too many long ones are kept."""
        if len(raw) <= SHORT_CLIENT_ID:
            return raw
        if self._long_bytes + len(raw) > LONG_CLIENT_IDS:
            start = raw[:SHORT_CLIENT_ID].decode("utf-8", "ignore")
            return f"{start}… ({len(raw):,} bytes)".encode()
        self._long_bytes += len(raw)
        return raw


def _first_bytes(store: Store, frames: FrameTable, rows: Int64, width: int) -> UInt8:
    """The first `width` bytes of each frame, `(n, width)`; zeros where a frame has fewer."""
    address = frames.beginnings(rows, width)
    size = frames.size.values[rows]
    in_one_piece = address >= 0
    heads = np.zeros((len(rows), width), np.uint8)
    heads[in_one_piece] = store.gather(address[in_one_piece], width)
    if (size < width).any():
        heads[np.arange(width) >= size[:, None]] = 0
    for at in np.flatnonzero(~in_one_piece).tolist():
        data, _ = frames.read(int(rows[at]), width)
        heads[at, : len(data)] = np.frombuffer(data, np.uint8)
    return heads


def _signed16(heads: UInt8, at: int) -> Int64:
    return np.ascontiguousarray(heads[:, at : at + 2]).view(">i2").reshape(-1).astype(np.int64)


def _signed32(heads: UInt8, at: int) -> Int64:
    return np.ascontiguousarray(heads[:, at : at + 4]).view(">i4").reshape(-1).astype(np.int64)


def response_correlation_ids(store: Store, frames: FrameTable, rows: Int64) -> Int64:
    """Return the `correlation_id` of response frames."""
    return _signed32(_first_bytes(store, frames, rows, RESPONSE_HEAD_SIZE), 4)


def request_headers(store: Store, frames: FrameTable, rows: Int64, clients: ClientIds) -> RequestHeaders:
    """Return the header fields of request frames."""
    heads = _first_bytes(store, frames, rows, REQUEST_HEAD_SIZE)
    declared, room = _signed16(heads, 12), frames.size.values[rows] - REQUEST_HEAD_SIZE
    lengths = np.minimum(declared, room)
    api_key, version = _signed16(heads, 4), _signed16(heads, 6)
    is_oldest = (api_key == ApiKey.CONTROLLED_SHUTDOWN) & (version == 0)
    lengths[is_oldest] = NO_CLIENT_ID
    last_version, is_harmless = _known_apis()
    known = np.where((api_key >= 0) & (api_key < len(last_version)), api_key, -1)
    trust = np.where(is_harmless[known], _Trust.ANY, _Trust.TEXT)
    trust[(declared > room) | (version < 0) | (version > last_version[known] + NEWER)] = _Trust.NONE
    client_id = np.zeros(len(rows), np.int64)
    named = np.flatnonzero(lengths >= 0)
    if len(named):
        client_id[named] = _client_ids(frames, rows[named], lengths[named], trust[named], clients)
    end = np.where(is_oldest, REQUEST_HEAD_SIZE - 2, REQUEST_HEAD_SIZE + np.maximum(lengths, 0))
    return RequestHeaders(api_key, version, _signed32(heads, 8), client_id, end)


@cache
def _known_apis() -> tuple[Int64, Bool]:
    """By API key the newest version, and whether requests have no secrets. The last entry is for unknown APIs."""
    last_version = np.zeros(max(each.key for each in apis()) + 2, np.int64)
    is_harmless = np.zeros(len(last_version), np.bool_)
    for each in apis():
        last_version[each.key] = each.versions.high
        is_harmless[each.key] = not may_hold_secrets(each.request, b"", EMPTY_CONTEXT)
    return last_version, is_harmless


def _client_ids(frames: FrameTable, rows: Int64, lengths: Int64, trust: Int64, clients: ClientIds) -> Int64:
    """Numbers of client ids. Each different short id of the batch is looked up once, each long one by itself."""
    numbers = np.zeros(len(rows), np.int64)
    is_short = lengths <= SHORT_CLIENT_ID
    if is_short.any():
        numbers[is_short] = _short_ids(frames, rows[is_short], lengths[is_short], trust[is_short], clients)
    for at in np.flatnonzero(~is_short).tolist():
        size = int(lengths[at])
        data, whole = frames.read(int(rows[at]), REQUEST_HEAD_SIZE + size)
        is_whole = whole == REQUEST_HEAD_SIZE + size
        numbers[at] = clients.number(data[REQUEST_HEAD_SIZE:], int(trust[at]) if is_whole else _Trust.NONE)
    return numbers


def _short_ids(frames: FrameTable, rows: Int64, lengths: Int64, trust: Int64, clients: ClientIds) -> Int64:
    """The same of short ids: they are copied one behind the other, each behind its length and trust."""
    prefixes = np.ascontiguousarray(lengths << 2 | trust, np.int64)
    addresses, _owner = frames.pointers(rows)
    in_pieces = np.flatnonzero(addresses == 0)
    addresses += REQUEST_HEAD_SIZE
    apart = np.zeros((len(in_pieces), SHORT_CLIENT_ID), np.uint8)
    for at, row in enumerate(in_pieces.tolist()):
        data, _ = frames.read(int(rows[row]), REQUEST_HEAD_SIZE + int(lengths[row]))
        apart[at, : len(data[REQUEST_HEAD_SIZE:])] = np.frombuffer(data[REQUEST_HEAD_SIZE:], np.uint8)
    addresses[in_pieces] = apart.ctypes.data + SHORT_CLIENT_ID * np.arange(len(in_pieces), dtype=np.uint64)
    places = prefixes.ctypes.data + prefixes.itemsize * np.arange(len(rows), dtype=np.uint64)
    sizes = np.stack([np.full(len(rows), prefixes.itemsize), lengths], axis=1)
    keys, ends = join(np.stack([places, addresses], axis=1).ravel(), sizes.ravel()), np.cumsum(sizes.sum(axis=1))
    which, firsts = numbered(keys, ends, np.zeros(len(rows), np.uint8))
    numbers = [
        clients.number(keys[end - size : end].tobytes(), known)
        for end, size, known in zip(
            ends[firsts].tolist(), lengths[firsts].tolist(), trust[firsts].tolist(), strict=True
        )
    ]
    return np.array(numbers, np.int64)[which]

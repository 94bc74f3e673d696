"""Puts a proxy's addresses in the place of brokers' in one response, as its bytes come.

Only hosts, ports, and the sizes around them change; they are written by our writer, and all else stays as it came, so
that unknown tagged fields and odd encodings do. A response that begins with addresses is held until the last of them is
there, as the frame's size comes first. Fetch and the like end with addresses, and only where a leader has moved
(KIP-951): mostly their last bytes show that there are none. Long ones are not held for that; see `_AtEnd`.

Invariants:
  * a response in which nothing is to be changed goes on byte for byte, a damaged one too;
  * what is held and kept is bounded.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final, Protocol

from dissector.core.text import counted
from dissector.protocol.codec.writer import write_value
from dissector.protocol.message_layout import PREFIX, RESPONSE_ID
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.loader import api, api_name
from dissector.protocol.wire import WireError, uvarint, uvarint_bytes
from dissector.proxy_server.address_fields import ADDRESSES
from dissector.proxy_server.address_walk import AddressWalk, FoundAddress
from dissector.proxy_server.frame_stream import Bytes
from dissector.proxy_server.ordinary import LEAST_VERSION, PlainEnd

HELD_BYTES: Final = 64 << 10
"""Of a response that is held whole because it may end with addresses."""
HELD_BACK: Final = 16 << 10
"""Of a longer one, its end: room for the addresses of 200 brokers."""
KEPT_BYTES: Final = 4 << 20
"""Of a response whose pieces are kept until its end has come."""
MOST_SPARE: Final = 8
"""Pieces of memory, each of so many bytes, that wait to be used again."""
EARLY_BYTES: Final = 16 << 20
"""Of a response that is held until the last of the addresses at its beginning."""
OFFER_BYTES: Final = 1 << 20
"""Of a response to ApiVersions, which is held whole: all APIs take a few hundred bytes."""
_LOOKED_AT: Final = 8
_LEAST_FILLER: Final = 2
Edit = tuple[int, int, bytes]
"""Where it begins and ends, and what stands there then."""
_FIRST_FLEXIBLE: Final = 3
"""Of ApiVersions."""
_HIDDEN_TAG: Final = 127
"""A tag that no schema has, in one byte."""
_FIRST: Final = {ApiKey.PRODUCE: 10, ApiKey.FETCH: 16}
"""The first versions that end with addresses."""
_EMPTY: Final = 21
"""Bytes of a Fetch response without topics; addresses take more."""


PLAIN_ENDS: Final[Mapping[int, PlainEnd]] = {
    ApiKey.PRODUCE: PlainEnd(13, _EMPTY, 0xFF_FFFF_FFFF_FFFF, 0),
    ApiKey.FETCH: PlainEnd(18, _EMPTY, 0xFF_FFFF, 0, some=0xFFFF_0000_0000),
    ApiKey.SHARE_FETCH: PlainEnd(2, _EMPTY, 0xFFFF, 0x0100),
    ApiKey.SHARE_ACKNOWLEDGE: PlainEnd(2, _EMPTY, 0xFFFF, 0x0100),
}
"""How a response ends that has no addresses at its end, by API, up to the version that was looked at: not to the newest
of a schema that a user imports.

Produce has no throttle time, and no tagged field of the body, a topic and a partition, where a host's end and a port
would be. Fetch has three counts of tagged fields, of a partition, its topic and the body, all zero; with addresses it
ends so only if a port is a multiple of 256, or none at all. The others have an empty array and no tagged field; with
addresses they end with a rack and two zeros."""
REWRITTEN: Final = {ApiKey.API_VERSIONS: LEAST_VERSION} | {key: _FIRST.get(ApiKey(key), 0) for key in ADDRESSES}
"""APIs whose responses may be changed, and the first versions of those."""


class OwnAddresses(Protocol):
    """Knows which addresses of the proxy stand for those of brokers."""

    def of(self, found: FoundAddress) -> tuple[str, int] | None:
        """Return the host and port in place of those of a broker; None to leave them."""

    def complain(self, words: str) -> None:
        """Say something to the user, once."""


class ResponseRewriter(Protocol):
    """Takes a frame in pieces and returns what goes on now."""

    def feed(self, piece: Bytes) -> Sequence[Bytes]:
        """Take the next bytes of the frame. With the last one, all that is left goes on."""


def rewriter(api_key: int, version: int, size: int, advertised: OwnAddresses) -> ResponseRewriter | None:
    """Return what rewrites a response to such a request; None if all of it goes on as it is."""
    if api_key == ApiKey.API_VERSIONS:
        if size > OFFER_BYTES:
            advertised.complain(f"ApiVersions: a response of {size:,} bytes is passed on unchanged")
            return None
        return _Offer(version, size)
    places = ADDRESSES.get(api_key)
    if places is None or version < REWRITTEN[api_key]:
        return None
    known = api(api_key)
    assert known is not None
    if not known.versions.contains(version):
        advertised.complain(
            f"{known.name} v{version} is unknown to this release: the addresses in its responses are not replaced"
        )
        return None
    walk = AddressWalk(api_key, version, size, places)
    if not places[0].last:
        return _Early(walk, size, advertised, known.name)
    return _AtEnd(walk, size, advertised, api_key, version)


class _Early:
    """Holds a response until the last address is there."""

    def __init__(self, walk: AddressWalk, size: int, advertised: OwnAddresses, name: str) -> None:
        self._walk, self._size, self._advertised, self._name = walk, size, advertised, name
        self._held: list[bytes] | None = []
        self._count = 0

    def feed(self, piece: Bytes) -> Sequence[Bytes]:
        if self._held is None:
            return (piece,)
        piece = bytes(piece)
        self._held.append(piece)
        self._count += len(piece)
        try:
            self._walk.feed(piece)
        except WireError as error:
            self._advertised.complain(
                f"{self._name}: {error}, at offset {error.at:,}: a damaged response is passed on unchanged"
            )
            return self._released()
        if self._walk.done:
            whole = b"".join(self._released())
            return (rewritten(whole, self._size, self._walk, self._advertised),)
        if self._count >= self._size or self._count > EARLY_BYTES:
            self._advertised.complain(f"{self._name}: its addresses have no end: a response is passed on unchanged")
            return self._released()
        return ()

    def _released(self) -> list[bytes]:
        held, self._held = self._held or [], None
        return held


class _Kept:
    """Memory for the bytes of a response. It is used again: memory that is new to the process costs more than to copy
    into it."""

    _spare: ClassVar[list[memoryview]] = []

    def __init__(self) -> None:
        self.view = self._spare.pop() if self._spare else memoryview(bytearray(KEPT_BYTES))

    def release(self) -> None:
        """Nothing of it is needed."""
        if len(self._spare) < MOST_SPARE:
            self._spare.append(self.view)


class _AtEnd:
    """Looks for addresses at the end of a response.

    A short one is held. Of a longer one only the end is, and what goes on in its place has as many bytes: the size is
    sent by then. Up to `KEPT_BYTES` its bytes are kept, and walked through only if the last ones ask for it.
    """

    def __init__(self, walk: AddressWalk, size: int, advertised: OwnAddresses, api_key: int, version: int) -> None:
        self._walk, self._size, self._advertised = walk, size, advertised
        self._api_key, self._version = api_key, version
        self._at = 0
        self._hold_from = 0 if size <= HELD_BYTES else size - HELD_BACK
        self._kept = _Kept() if HELD_BYTES < size <= KEPT_BYTES else None
        self._end: list[bytes] = []
        self._damaged = False

    def feed(self, piece: Bytes) -> Sequence[Bytes]:
        start = self._at
        self._at += len(piece)
        if self._kept is not None:
            self._kept.view[start : self._at] = piece
        elif self._hold_from:
            self._look(bytes(piece))
        if self._at <= self._hold_from:
            return (piece,)
        cut = max(0, self._hold_from - start)
        self._end.append(bytes(piece[cut:]))
        out = [piece[:cut]] if cut else []
        return out if self._at < self._size else [*out, *self._last()]

    def _look(self, data: bytes) -> None:
        if not self._damaged:
            try:
                self._walk.feed(data)
            except WireError:
                self._damaged = True

    def _last(self) -> Sequence[bytes]:
        """Return what goes on of the end that was held."""
        if self._size <= KEPT_BYTES:
            last = self._end[-1] if len(self._end[-1]) >= _LOOKED_AT else b"".join(self._end)
            sure = PLAIN_ENDS[ApiKey(self._api_key)].fits(self._version, last, self._size)
            if not sure:
                self._look(b"".join(self._end) if self._kept is None else bytes(self._kept.view[: self._size]))
            if self._kept is not None:
                self._kept.release()
            if sure:
                return self._end
        walk = self._walk
        begun = walk.tag.tag_start if walk.tag is not None else walk.array_start
        if self._damaged or not walk.found or begun is None:
            return self._end
        if begun <= self._hold_from > 0:
            name = api_name(self._api_key)
            self._advertised.complain(
                f"{name}: the addresses of {counted(len(walk.found), 'broker')} at the end of a response of "
                f"{self._size:,} bytes are too many to replace: clients may connect to these brokers directly"
            )
            return self._end
        end = b"".join(self._end)
        if not self._hold_from:
            return (rewritten(end, self._size, walk, self._advertised),)
        return (fitted(end, self._hold_from, walk, self._advertised),)


def fitted(end: bytes, base: int, walk: AddressWalk, advertised: OwnAddresses) -> bytes:
    """Return the end of a response, from offset `base` on, with the addresses of the proxy, in as many bytes:
    what is left is filled with a tagged field that no schema has. Where they don't fit, they are hidden."""
    edits = [(start - base, stop - base, new) for start, stop, new in edits_of(walk, advertised)]
    if not edits:
        return end
    if walk.tag is not None:
        start, value = walk.tag.tag_start - base, walk.tag.value_start - base
        stop = value + walk.tag.size
        content = spliced(end[:stop], edits, value)
        made = end[start : start + 1] + uvarint_bytes(len(content)) + content
        room = stop - start - len(made)
        if room == 0:
            return end[:start] + made + end[stop:]
        if room >= _LEAST_FILLER and end[start - 1] < _HIDDEN_TAG:
            return end[: start - 1] + bytes((end[start - 1] + 1,)) + made + filler(room) + end[stop:]
        return end[:start] + bytes((_HIDDEN_TAG,)) + end[start + 1 :]
    assert walk.array_start is not None
    start = walk.array_start - base
    made = spliced(end[:-1], edits, start)
    room = len(end) - start - len(made) - 1
    if end[-1] == 0 and room == 0:
        return end[:start] + made + b"\0"
    if end[-1] == 0 and room >= _LEAST_FILLER:
        return end[:start] + made + b"\1" + filler(room)
    return end[:start] + b"\1\1" + filler(len(end) - start - 2)


def filler(size: int) -> bytes:
    """Return a tagged field that no schema has, in so many bytes: at least two."""
    for width in range(1, 6):
        content = size - 1 - width
        length = uvarint_bytes(content)
        if len(length) == width - 1:  # between two widths: varints may end with a zero
            length = length[:-1] + bytes((length[-1] | 0x80, 0))
        if len(length) == width:
            return bytes((_HIDDEN_TAG,)) + length + bytes(content)
    raise ValueError(f"{size} bytes can't be filled")


def rewritten(head: bytes, size: int, walk: AddressWalk, advertised: OwnAddresses) -> bytes:
    """Return a frame's beginning, or all of it, with the addresses of the proxy; `size` is the frame's."""
    edits = edits_of(walk, advertised)
    if not edits:
        return head
    if walk.tag is not None:
        content = uvarint_bytes(walk.tag.size + _growth(edits))
        edits.append((walk.tag.size_start, walk.tag.value_start, content))
        edits.sort()
    length = size - PREFIX + _growth(edits)
    return length.to_bytes(PREFIX, "big") + spliced(head, edits, PREFIX)


def edits_of(walk: AddressWalk, advertised: OwnAddresses) -> list[Edit]:
    """Return what replaces the addresses that were found, in the order of their places."""
    edits: list[Edit] = []
    for found in walk.found:
        new = advertised.of(found) if found.host and 0 < found.port < 1 << 16 else None
        if new is not None:
            edits.append((found.host_start, found.host_end, write_value(found.host_plan, new[0])))
            edits.append(
                (found.port_start, found.port_start + found.port_plan.size, write_value(found.port_plan, new[1]))
            )
    edits.sort()
    return edits


def _growth(edits: Iterable[Edit]) -> int:
    return sum(len(new) - (end - start) for start, end, new in edits)


def spliced(data: bytes, edits: Iterable[Edit], at: int) -> bytes:
    """Return what is from `at` on, with edits in the order of their places."""
    parts: list[bytes] = []
    for start, end, new in edits:
        parts += (data[at:start], new)
        at = end
    parts.append(data[at:])
    return b"".join(parts)


class _Offer:
    """Caps the versions of the APIs with addresses at those that the tables know: newer responses can't be rewritten.

    Whatever the version of ApiVersions, its body begins with an error and the array of APIs; a broker that lacks the
    version answers in version 0 (KIP-511).
    """

    def __init__(self, version: int, size: int) -> None:
        self._version, self._left = version, size
        self._held: list[bytes] = []

    def feed(self, piece: Bytes) -> Sequence[Bytes]:
        self._held.append(bytes(piece))
        self._left -= len(piece)
        if self._left:
            return ()
        whole = bytearray(b"".join(self._held))
        try:
            cap_versions(whole, self._version)
        except (WireError, IndexError):  # damaged
            return self._held
        return (bytes(whole),)


def cap_versions(frame: bytearray, version: int) -> None:
    """Cap the versions in a response to ApiVersions, in place. Raises `WireError`, `IndexError` for a damaged one."""
    data, at = bytes(frame), RESPONSE_ID.stop
    is_old = int.from_bytes(data[at : at + 2], "big") == ErrorCode.UNSUPPORTED_VERSION
    flexible = version >= _FIRST_FLEXIBLE and not is_old
    at += 2
    if flexible:
        count, at = uvarint(data, at)
        count -= 1
    else:
        count, at = int.from_bytes(data[at : at + 4], "big", signed=True), at + 4
    for _ in range(count):
        if at + 6 > len(data):
            raise WireError("ends inside an API", at)
        key, _, high = (int.from_bytes(data[at + n : at + n + 2], "big", signed=True) for n in (0, 2, 4))
        known = api(key) if key in ADDRESSES else None
        if known is not None and high > known.versions.high:
            frame[at + 4 : at + 6] = known.versions.high.to_bytes(2, "big")
        at += 6
        if flexible:
            tags, at = uvarint(data, at)
            for _ in range(tags):
                _, at = uvarint(data, at)
                size, at = uvarint(data, at)
                at += size

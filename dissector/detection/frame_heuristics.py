"""How requests and responses of Kafka begin: what distinguishes a frame's head from other bytes.

A request has a known API key, a version in range, and a plausible client id; a response has the correlation id of a
pending request. Responses with correlation ids below 2**16 read as Produce requests: so a Produce request must have
plausible acks, too.
"""

import codecs
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8
from dissector.framing import FoundFrame, FrameEvidence
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import apis

REQUEST_HEAD: Final = 14
HEAD: Final = 64
"""Bytes that are read to recognize a request by its header and client id."""
NEWER_VERSIONS: Final = 3
"""A client newer than the tables may use versions this far past those known."""
PRODUCE: Final = ApiKey.PRODUCE.to_bytes(2, "big")
_PRODUCE, _METADATA = 0, 3
"""APIs whose version 0 begins like requests of ZooKeeper, and like those of PostgreSQL."""
_LOW_SIZE: Final = (1 << 24) - 1
"""Frames up to this size begin with a zero, which few other protocols do."""
_TEXT: Final = re.compile(r"[^\x00-\x1f\x7f]*")
_STEP: Final = 16
"""The largest step between correlation ids: a client may count over all its connections."""
_LONGEST_NAME: Final = 1 << 10
"""The longest client id that a search accepts."""
_NEAR: Final = 1 << 12
"""The largest distance between correlation ids of one connection."""
_WORD: Final = 0xFFFFFFFF
_LEAST_RESPONSE: Final = 6
"""A correlation id and an error code."""
_ACKS: Final = (b"\xff\xff", b"\0\0", b"\0\x01")
_LEAST_BODY: Final = 7
"""Bytes of a Produce request from its acks on."""
_NAME: Final = re.compile(rb"[a-zA-Z0-9._-]*")


_NONE, _FAIR, _STRONG = FrameEvidence.NONE, FrameEvidence.FAIR, FrameEvidence.STRONG
"""Bound once: members of an enum are slow to look up."""
_SERIES: Final = 3
"""Responses in a row that are recognized on any port."""
_LONG_SERIES: Final = 6
"""The same where they are all in one segment."""


class RequestSeries:
    """Any requests can follow each other."""

    state: Final = 0

    def add(self, head: bytes) -> bool:
        return True

    def is_consistent(self, ends: int) -> bool:
        return True


class ResponseSeries:
    """Correlation ids rise from response to response, by at most `step`."""

    def __init__(self, step: int, *, known: bool) -> None:
        self._step = step
        self._known = known
        """Whether any number of responses is enough, as the connection is known to be Kafka."""
        self._count = 0
        self._last = 0
        self._rise = True

    @property
    def state(self) -> int:
        return min(self._count, _LONG_SERIES) << 1 | self._rise

    def add(self, head: bytes) -> bool:
        identifier = int.from_bytes(head[4:8], "big")
        self._rise &= not self._count or 0 < identifier - self._last <= self._step
        self._last = identifier
        self._count += 1
        return self._rise

    def is_consistent(self, ends: int) -> bool:
        """Whether ids rise, in enough responses to rule out chance: three, if they end more than one segment. Three in
        one segment are found among the small integers of which other protocols are full."""
        return self._rise and (self._known or self._count >= (_SERIES if ends > 1 else _LONG_SERIES))


class UnknownSeries(ResponseSeries):
    """The same where ZooKeeper's frames, which have rising ids too, must be distinguished from Kafka's."""

    def __init__(self, step: int) -> None:
        super().__init__(step, known=False)
        self._has_path = False
        self._are_replies = True
        self._transaction = 1

    @property
    def state(self) -> int:
        return super().state << 2 | self._has_path << 1 | self._are_replies

    def add(self, head: bytes) -> bool:
        """ZooKeeper's requests have an operation and a path behind the id; its replies a transaction id, which is never
        0 and rises, and an error, mostly 0."""
        self._has_path |= head[16:17] == b"/" and head[12:14] == bytes(2)
        transaction = int.from_bytes(head[8:16], "big")
        self._are_replies &= transaction >= self._transaction and head[16:20] == bytes(4)
        self._transaction = transaction
        return super().add(head) and not self._has_path

    def is_consistent(self, ends: int) -> bool:
        return super().is_consistent(ends) and not self._has_path and not self._are_replies


class PendingIds(NamedTuple):
    """Correlation ids of a connection's pending requests."""

    packets: dict[int, int]
    """By id, signed: the packet of the oldest request that has it."""
    are_unique: bool = True
    """Whether no two requests have the same."""


class RequestHeuristics:
    """How requests begin."""

    one_is_enough = True
    within_segments = True

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._versions = {api.key: (api.versions.low, api.versions.high + NEWER_VERSIONS) for api in apis()}
        self._known = np.zeros(
            (max(self._versions) + 1, max(high for _, high in self._versions.values()) + 1), np.bool_
        )
        for key, (low, high) in self._versions.items():
            self._known[key, low : high + 1] = True
        self._plain = self._known.copy()
        self._plain[_PRODUCE] = self._plain[_METADATA, 0] = False

    def strong(self, words: Int64, lengths: Int64) -> Bool:
        key, version = words >> 16, words & 0xFFFF
        fits = (lengths > 0) & (lengths <= _LONGEST_NAME) & (key < len(self._known)) & (version < self._known.shape[1])
        fits[fits] = self._known[key[fits], version[fits]]
        return fits

    def plain(self, heads: UInt8, sizes: Int64) -> Bool:
        """Which heads, `(n, HEAD)`, of which `sizes` bytes are there, are requests without doubt: they have a client id
        of plain text, and no other protocol begins like them."""
        size, word = np.ascontiguousarray(heads[:, :8]).view(">i4").astype(np.int64).T
        length = np.ascontiguousarray(heads[:, 12:14]).view(">i2").reshape(-1).astype(np.int64)
        name = np.arange(HEAD - REQUEST_HEAD) < length[:, None]
        text = (heads[:, REQUEST_HEAD:] >= 0x20) & (heads[:, REQUEST_HEAD:] < 0x7F)
        fits = (
            (text | ~name).all(axis=1)
            & (length >= -1)
            & (REQUEST_HEAD + np.maximum(length, 0) <= np.minimum(sizes, HEAD))
        )
        fits &= (REQUEST_HEAD - 4 + np.maximum(length, 0) <= size) & (size <= min(self._largest, _LOW_SIZE))
        key, version = word >> 16, word & 0xFFFF
        fits &= (key >= 0) & (key < len(self._plain)) & (version < self._plain.shape[1])
        fits[fits] = self._plain[key[fits], version[fits]]
        return fits

    def judge(self, head: bytes, packet: int) -> FrameEvidence:
        if not self.is_request(head) or not is_printable(head):
            return _NONE
        if is_named(head):
            return _STRONG
        return _FAIR if head[4:6] != PRODUCE or has_produce_body(head) else _NONE

    def series(self) -> RequestSeries:
        return RequestSeries()

    def follow(self, found: Iterable[FoundFrame]) -> bool:
        return True

    def is_request(self, head: bytes) -> bool:
        """Whether a head has a known API in a known version, and a plausible size and client id."""
        versions = self._versions.get(int.from_bytes(head[4:6], "big"))
        if versions is None or not versions[0] <= int.from_bytes(head[6:8], "big") <= versions[1]:
            return False
        return self.is_header(head)

    def is_known(self, head: bytes) -> bool:
        """Whether the API is known."""
        return int.from_bytes(head[4:6], "big") in self._versions

    def is_header(self, head: bytes) -> bool:
        """Whether a head has the size and client id of a request."""
        if len(head) < REQUEST_HEAD:
            return False
        size = int.from_bytes(head[:4], "big", signed=True)
        length = int.from_bytes(head[12:14], "big", signed=True)
        return REQUEST_HEAD - 4 <= size <= self._largest and -1 <= length <= size - (REQUEST_HEAD - 4)


class ResponseHeuristics:
    """How responses begin: with the correlation id of a pending request.

    Another id near those may belong to a request that was not captured. Where the connection is not `known` to be
    Kafka, only a series of rising ids is accepted."""

    one_is_enough = False
    within_segments = True

    def __init__(self, pending: PendingIds, *, known: bool) -> None:
        self._known = known
        self._pending = pending.packets
        self._are_unique = pending.are_unique
        self._ascending = sorted(pending.packets)
        self._low, self._high = 0, len(self._ascending) - 1
        """The least and the greatest id that may be pending."""
        self._words = np.sort(np.array(self._ascending, np.int64) & _WORD)

    def strong(self, words: Int64, lengths: Int64) -> Bool:
        """Ids that `follow` has taken are among these: `judge` knows better."""
        if not len(self._words):
            return np.zeros(len(words), np.bool_)
        at = np.minimum(np.searchsorted(self._words, words), len(self._words) - 1)
        found: Bool = self._words[at] == words
        return found

    def follow(self, found: Iterable[FoundFrame]) -> bool:
        """A response takes the request with its id; which one is for the index to say where more have it."""
        if self._are_unique:
            for identifier, packet in found:
                if self._pending.get(identifier, packet) < packet:
                    del self._pending[identifier]
        return self._are_unique

    def _is_near(self, identifier: int) -> bool:
        """Whether an id is near those that are pending, if there are any."""
        if not self._pending:
            return identifier >= 0
        while self._ascending[self._low] not in self._pending:
            self._low += 1
        while self._ascending[self._high] not in self._pending:
            self._high -= 1
        return self._ascending[self._low] - _NEAR <= identifier < self._ascending[self._high] + _NEAR

    def judge(self, head: bytes, packet: int) -> FrameEvidence:
        identifier = int.from_bytes(head[4:8], "big", signed=True)
        requested = self._pending.get(identifier)
        if requested is not None and requested < packet:
            return _STRONG
        possible = self._is_near(identifier) and int.from_bytes(head[:4], "big") >= _LEAST_RESPONSE
        return _FAIR if possible else _NONE

    def series(self) -> ResponseSeries:
        return ResponseSeries(_NEAR, known=self._known)


class EitherHeuristics:
    """How frames begin on a port that is not Kafka's: at the start of a segment, as a request with a client id (if this
    side may be the client) or as responses."""

    one_is_enough = False
    within_segments = False

    def __init__(self, requests: RequestHeuristics, *, may_be_client: bool) -> None:
        self._requests = requests
        self._may_be_client = may_be_client

    def strong(self, words: Int64, lengths: Int64) -> Bool:
        return np.ones(len(words), np.bool_)

    def judge(self, head: bytes, packet: int) -> FrameEvidence:
        if self._may_be_client and self._requests.judge(head, packet) is _STRONG:
            return _STRONG
        return _FAIR if head[4] <= 0x7F else _NONE

    def follow(self, found: Iterable[FoundFrame]) -> bool:
        return True

    def series(self) -> UnknownSeries:
        return UnknownSeries(_STEP)


def is_cut_short(head: bytes) -> bool:
    """Whether more bytes are needed to decide if this is a request. For Produce without a client id these include the
    beginning of its body."""
    if len(head) < REQUEST_HEAD:
        return head[:1] in (b"", b"\0")
    nameless = head[4:6] == PRODUCE and head[12:14] in (b"\xff\xff", b"\0\0")
    return nameless and len(head) < min(HEAD, 4 + int.from_bytes(head[:4], "big"))


def is_named(head: bytes) -> bool:
    """Whether a request has a client id; Produce must have a plausible body, too."""
    length = int.from_bytes(head[12:14], "big", signed=True)
    if length <= 0 or not is_printable(head):
        return False
    return head[4:6] != PRODUCE or has_produce_body(head)


def has_produce_body(head: bytes) -> bool:
    """Whether what follows the client id reads as the body of a Produce request, as far as `head` has it: a
    transactional id from version 3 on, acks from -1 to 1, a timeout of less than hours, topics."""
    at = REQUEST_HEAD + max(0, int.from_bytes(head[12:14], "big", signed=True))
    version = int.from_bytes(head[6:8], "big")
    length = -1
    if version >= 9:
        # Behind the header's tagged fields, of which there are none.
        if head[at : at + 1] > b"\0":
            return False
        length, at = int.from_bytes(head[at + 1 : at + 2], "big") - 1, at + 2
    elif version >= 3:
        length, at = int.from_bytes(head[at : at + 2], "big", signed=True), at + 2
    if at > len(head):
        return True
    body = at + max(0, length)
    if length == 0 or length < -1 or body + _LEAST_BODY > 4 + int.from_bytes(head[:4], "big"):
        return False
    return _is_text(head[at:body]) and _is_produce_body(head[body : body + 13], flexible=version >= 9)


def _is_produce_body(body: bytes, *, flexible: bool) -> bool:
    """Whether acks, timeout, and number and name of topics are plausible, as far as `body` has them."""
    if (len(body) >= 2 and body[:2] not in _ACKS) or body[2:3] > b"\0":
        return False
    if flexible:
        return len(body) < 7 or body[6] >= 2
    count, name = body[6:10], body[12:13]
    return len(count) < 4 or (count[:2] == bytes(2) != count[2:] and _NAME.fullmatch(name) is not None)


def is_printable(head: bytes) -> bool:
    """Whether the client id has no control characters. A search requires it; where a frame's place is known a hostile
    client id is accepted."""
    length = max(0, int.from_bytes(head[12:14], "big", signed=True))
    return _is_text(head[14 : 14 + length])


def _is_text(raw: bytes) -> bool:
    try:
        text, _ = codecs.utf_8_decode(raw, "strict", False)  # a head may end in the middle of a character
    except UnicodeDecodeError:
        return False
    return _TEXT.fullmatch(text) is not None

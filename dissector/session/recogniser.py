"""Who speaks Kafka, and which end is the client.

The client is the side that sent the SYN, else the one that is not on a known port, else the one whose bytes read as
requests. That the bytes are Kafka at all is told by content, on any port:

  * a connection whose beginning was seen, by the header of its first request (known API key, version in range, sane
    client id);
  * one that was in progress already, by frames that a search finds (`framing/resync.py`). Elsewhere than on Kafka's
    ports they must say more, as other protocols have size prefixes too: requests must name their client, responses
    be several with ids that go up by little.

Responses to correlation ids below 2**16 read as Produce requests: so a Produce request must have its acks where they
belong.

What is none of it is left alone, and counted by name where its first bytes tell (`strangers`). A port that the user
says is Kafka's is believed whatever its content, unless that is TLS.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Set
from itertools import pairwise
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from dissector.columns import Column
from dissector.framing import Evidence, Heads, Verdict
from dissector.limits import Limits
from dissector.protocol.schema.loader import apis
from dissector.session import strangers
from dissector.session.strangers import Protocol as Spoken

KAFKA_PORTS: Final = frozenset({9092})
REQUEST_HEAD: Final = 14
RESPONSE_HEAD: Final = 8
HEAD: Final = 64
"""Bytes that are looked at to tell a request by its header and client id."""
NEWER_VERSIONS: Final = 3
"""A client newer than the tables may use versions this far past those known."""
_TEXT: Final = re.compile(r"[^\x00-\x1f\x7f]*")
_SERIES: Final = 3
"""Responses in a row by which they are told on any port."""
_STEP: Final = 16
"""How much ids go up by at the most: a client may count for all its connections."""
_LONGEST_NAME: Final = 1 << 10
"""A client id longer than this is not looked for where a frame's place is lost."""
_NEAR: Final = 1 << 12
"""How far the ids of a connection may be apart."""
_LEAST_RESPONSE: Final = 6
"""A correlation id and an error code."""
_PRODUCE: Final = b"\0\0"
_ACKS: Final = (b"\xff\xff", b"\0\0", b"\0\x01")
_LEAST_BODY: Final = 7
"""Bytes of a Produce request from its acks on."""
_NAME: Final = re.compile(rb"[a-zA-Z0-9._-]*")
Words = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

Outstanding = Callable[[int], Mapping[int, int]]
"""Correlation ids of a connection's requests that wait for a response, each with the packet of the oldest."""


class Flows(Protocol):
    """What this module asks of the connection table."""

    def __len__(self) -> int:
        """How many connections there are."""

    def endpoints(self, connection: int) -> tuple[tuple[str, int], tuple[str, int]]:
        """Address and port of side 0 and side 1."""

    def ports(self, connection: int) -> tuple[int, int]:
        """The port of side 0 and of side 1."""

    def syn_side(self, connection: int) -> int:
        """The side that opened the connection, -1 where the capture did not see it."""

    def first_packet(self, connection: int) -> int:
        """The number of its first packet."""

    def first_time_ns(self, connection: int) -> int:
        """The time of its first packet."""

    def ended(self, connection: int) -> tuple[int, int]:
        """Which of the flags FIN and RST side 0 and side 1 have sent; 0 where none."""


class KafkaRecogniser:
    """Decides for each direction; remembers the client's side of each connection that speaks Kafka. `ports` are those
    that the user says are Kafka's."""

    def __init__(self, flows: Flows, limits: Limits, outstanding: Outstanding, ports: Set[int] = frozenset()) -> None:
        self._flows = flows
        self._ports = ports
        self._outstanding = outstanding
        self._requests = _Requests(limits.frame_size)
        self.client_side: dict[int, int] = {}
        """Side of the client, of connections that speak Kafka."""
        self.spoken = Column(np.uint8)
        """What each connection speaks that does not speak Kafka, as `strangers.Protocol`."""

    def verdict(self, direction: int, head: bytes, *, from_start: bool, final: bool) -> Verdict:
        """What a direction is of which `head` is seen first."""
        connection, side = divmod(direction, 2)
        self.spoken.grow(connection + 1)
        if connection in self.client_side:
            return self._verdict_known(connection, side, head, from_start=from_start)
        if self.spoken.values[connection] >= Spoken.UNKNOWN and self._flows.syn_side(connection) >= 0:
            return Verdict.OTHER
        return self._verdict_unknown(connection, side, head, from_start=from_start, final=final)

    def _verdict_known(self, connection: int, side: int, head: bytes, *, from_start: bool) -> Verdict:
        """Of a connection that speaks Kafka: frames begin where its stream begins, else they are searched for."""
        if not from_start or self._flows.syn_side(connection) < 0:
            return Verdict.SEARCH
        asks = self.client_side[connection] == side
        return Verdict.SEARCH if asks and not self.is_request(head) else Verdict.FRAMES

    def _verdict_unknown(self, connection: int, side: int, head: bytes, *, from_start: bool, final: bool) -> Verdict:
        opener = self._flows.syn_side(connection)
        begins = from_start and opener >= 0
        if self._is_stranger(connection, head, begins=begins, asks=opener == side):
            return Verdict.OTHER
        server = self._said_server(connection)
        if opener == side and not final and _is_cut_short(head):
            return Verdict.UNDECIDED
        asks = opener == side or (opener < 0 and self.kafka_side(connection) != side)
        if asks and self._is_first(connection, side, head):
            self.client_side[connection] = side
            return Verdict.FRAMES
        if begins and opener == side:
            return self._verdict_at_start(connection, side)
        if server is not None:
            self.client_side[connection] = 1 - server
            return self._verdict_known(connection, side, head, from_start=from_start)
        if begins and self.kafka_side(connection) == side:
            return self._verdict_of_silence(connection, side, head) if final else Verdict.UNDECIDED
        return Verdict.PERHAPS

    def _verdict_of_silence(self, connection: int, side: int, head: bytes) -> Verdict:
        """Of a server on Kafka's port of which all was captured, but nothing of what its client said: the ports are
        believed, unless its first bytes are no response."""
        if _Responses({}, known=True).judge(head, 0) is Evidence.NONE:
            return Verdict.PERHAPS
        self.client_side[connection] = 1 - side
        return Verdict.FRAMES

    def _is_stranger(self, connection: int, head: bytes, *, begins: bool, asks: bool) -> bool:
        """Whether a connection is known not to be Kafka; what it is by the looks of it is noted."""
        spoken = strangers.told(head)
        if spoken is None or (spoken is Spoken.ZOOKEEPER and not asks):
            spoken = Spoken(max(Spoken.DOUBTFUL, int(self.spoken.values[connection])))
        self.spoken.values[connection] = spoken
        if spoken <= Spoken.UNKNOWN or not begins:
            return False
        return spoken is Spoken.TLS or self._said_server(connection) is None

    def _verdict_at_start(self, connection: int, side: int) -> Verdict:
        """Of a client whose first bytes are no request."""
        if self._said_server(connection) == 1 - side:
            self.client_side[connection] = side
            return Verdict.SEARCH
        if self.spoken.values[connection] == Spoken.DOUBTFUL:
            self.spoken.values[connection] = Spoken.UNKNOWN
        return Verdict.OTHER

    def _is_first(self, connection: int, side: int, head: bytes) -> bool:
        """Whether a request at the beginning of what was seen is enough to take a connection for Kafka."""
        if self._flows.syn_side(connection) != side:
            return self.is_request(head) and _is_named(head)
        if self._is_newer_request(connection, head):
            return True
        trusted = self.kafka_side(connection) is not None
        if not self.is_request(head) or not (trusted or _is_printable(head)):
            return False
        if head[4:6] != _PRODUCE or _is_named(head):
            return True
        return trusted and (_produces(head) or (head[12:14] != bytes(2) and _is_printable(head)))

    def found(self, direction: int, head: bytes) -> None:
        """A frame was found in a direction that was perhaps Kafka's; it begins with `head`."""
        connection, side = divmod(direction, 2)
        server = self.kafka_side(connection)
        if server is None:
            server = 1 - side if self._requests.judge(head, 0) is Evidence.STRONG else side
        self.client_side[connection] = 1 - server

    def expects(self, direction: int) -> bool:
        """Whether to go on searching: on Kafka's port, unless it looks like another protocol."""
        connection = direction >> 1
        return self.kafka_side(connection) is not None and self.spoken.values[connection] == Spoken.DOUBTFUL

    def _said_server(self, connection: int) -> int | None:
        """The side that is the server because the user says so."""
        return self._side_on(connection, self._ports) if self._ports else None

    def kafka_side(self, connection: int) -> int | None:
        """The one side that is on a port of Kafka's."""
        said = self._said_server(connection)
        return self._side_on(connection, KAFKA_PORTS) if said is None else said

    def _side_on(self, connection: int, ports: Set[int]) -> int | None:
        sides = [side for side, port in enumerate(self._flows.ports(connection)) if port in ports]
        if len(sides) == 2 and self._flows.syn_side(connection) >= 0:
            return 1 - self._flows.syn_side(connection)
        return sides[0] if len(sides) == 1 else None

    def asks(self, direction: int) -> bool:
        """Whether a direction is a client's, as far as can be told."""
        connection, side = divmod(direction, 2)
        client = self.client_side.get(connection)
        if client is not None:
            return client == side
        return self.kafka_side(connection) != side

    def heads(self, direction: int) -> Heads:
        """How frames of this direction begin."""
        connection = direction >> 1
        if connection not in self.client_side and self.kafka_side(connection) is None:
            return _Either(self._requests, may_ask=self._flows.syn_side(connection) in (-1, direction & 1))
        if self.asks(direction):
            return self._requests
        return _Responses(self._outstanding(connection), known=connection in self.client_side)

    def strangers(self) -> list[int]:
        """Connections on Kafka's port with data that is not Kafka's."""
        data = np.flatnonzero(self.spoken.values != Spoken.NOTHING).tolist()
        return [c for c in data if c not in self.client_side and self.kafka_side(c) is not None]

    def protocols(self) -> dict[str, int]:
        """How many connections speak what, the most frequent first."""
        mine = np.fromiter(self.client_side, np.int64, len(self.client_side))
        others = np.delete(self.spoken.values, mine)
        counts: Counter[str] = Counter()
        for number, count in zip(*np.unique(others, return_counts=True), strict=True):
            counts[Spoken(number).words] += int(count)
        counts["Kafka"] = len(mine)
        counts[Spoken.NOTHING.words] += len(self._flows) - len(self.spoken)
        return {name: count for name, count in counts.most_common() if count}

    def reads_as_request(self, head: bytes) -> bool:
        """Whether bytes begin with a request whose client id is fit to print."""
        return self.is_request(head) and _is_printable(head)

    def is_request(self, head: bytes) -> bool:
        """Whether bytes begin with a request that one of the known APIs has."""
        return self._requests.is_request(head)

    def _is_newer_request(self, connection: int, head: bytes) -> bool:
        """Whether bytes at the start of a connection begin with a request of an API or version that is not known: its
        client must have a name, and its API be known unless the server is on Kafka's port."""
        requests = self._requests
        if not requests.is_header(head) or not _is_named(head) or max(head[4], head[6]) > 0x7F:
            return False
        return requests.is_known(head) or self.kafka_side(connection) is not None


class _Requests:
    """How requests begin."""

    alone = True
    inside = True

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._versions = {api.key: (api.versions.low, api.versions.high + NEWER_VERSIONS) for api in apis()}
        self._known = np.zeros(
            (max(self._versions) + 1, max(high for _, high in self._versions.values()) + 1), np.bool_
        )
        for key, (low, high) in self._versions.items():
            self._known[key, low : high + 1] = True

    def strong(self, words: Words, lengths: Words) -> Mask:
        key, version = words >> 16, words & 0xFFFF
        fits = (lengths > 0) & (lengths <= _LONGEST_NAME) & (key < len(self._known)) & (version < self._known.shape[1])
        fits[fits] = self._known[key[fits], version[fits]]
        return fits

    def judge(self, head: bytes, packet: int) -> Evidence:
        if not self.is_request(head) or not _is_printable(head):
            return Evidence.NONE
        if _is_named(head):
            return Evidence.STRONG
        return Evidence.FAIR if head[4:6] != _PRODUCE or _produces(head) else Evidence.NONE

    def together(self, heads: list[bytes]) -> bool:
        return True

    def is_request(self, head: bytes) -> bool:
        """Whether a known API in a known version, with a size and a client id that make sense."""
        versions = self._versions.get(int.from_bytes(head[4:6], "big"))
        if versions is None or not versions[0] <= int.from_bytes(head[6:8], "big") <= versions[1]:
            return False
        return self.is_header(head)

    def is_known(self, head: bytes) -> bool:
        """Whether the API is known."""
        return int.from_bytes(head[4:6], "big") in self._versions

    def is_header(self, head: bytes) -> bool:
        """Whether size and client id of a request make sense."""
        if len(head) < REQUEST_HEAD:
            return False
        size = int.from_bytes(head[:4], "big", signed=True)
        length = int.from_bytes(head[12:14], "big", signed=True)
        return REQUEST_HEAD - 4 <= size <= self._largest and -1 <= length <= size - (REQUEST_HEAD - 4)


class _Responses:
    """How responses begin: with the id of a request that was seen before. Another id, near those that wait, may answer
    a request that was not seen; where the connection is not `known` to be Kafka's, several with ids that go up may."""

    alone = False
    inside = True

    def __init__(self, waiting: Mapping[int, int], *, known: bool) -> None:
        self._known = known
        self._waiting = waiting
        self._ids = np.fromiter(waiting, np.int64, len(waiting)) & 0xFFFFFFFF
        self._near = range(min(waiting) - _NEAR, max(waiting) + _NEAR) if waiting else range(1 << 31)

    def strong(self, words: Words, lengths: Words) -> Mask:
        return np.isin(words, self._ids)

    def judge(self, head: bytes, packet: int) -> Evidence:
        identifier = int.from_bytes(head[4:8], "big", signed=True)
        asked = self._waiting.get(identifier)
        if asked is not None and asked < packet:
            return Evidence.STRONG
        possible = identifier in self._near and int.from_bytes(head[:4], "big") >= _LEAST_RESPONSE
        return Evidence.FAIR if possible else Evidence.NONE

    def together(self, heads: list[bytes]) -> bool:
        return (len(heads) >= _SERIES or self._known) and _go_up(heads, _NEAR)


class _Either:
    """How frames begin on a port that says nothing: where segments begin, as a request with a client's name (if this
    side `may_ask`) or as responses."""

    alone = False
    inside = False

    def __init__(self, requests: _Requests, *, may_ask: bool) -> None:
        self._requests = requests
        self._may_ask = may_ask

    def strong(self, words: Words, lengths: Words) -> Mask:
        return np.ones(len(words), np.bool_)

    def judge(self, head: bytes, packet: int) -> Evidence:
        if self._may_ask and self._requests.judge(head, packet) is Evidence.STRONG:
            return Evidence.STRONG
        return Evidence.FAIR if head[4] <= 0x7F else Evidence.NONE

    def together(self, heads: list[bytes]) -> bool:
        """Responses whose ids go up."""
        return len(heads) >= _SERIES and _go_up(heads, _STEP) and not _is_zookeeper(heads)


def _is_zookeeper(heads: list[bytes]) -> bool:
    """Whether frames with ids are those of ZooKeeper: its requests have an operation and a path behind the id, its
    replies a transaction id, which is never 0 and goes up, and an error, mostly 0."""
    if any(head[16:17] == b"/" and head[12:14] == bytes(2) for head in heads):
        return True
    transactions = [int.from_bytes(head[8:16], "big") for head in heads]
    return transactions[0] > 0 and transactions == sorted(transactions) and all(h[16:20] == bytes(4) for h in heads)


def _is_cut_short(head: bytes) -> bool:
    """Whether more bytes must tell if this is a request: of Produce without a client's name even those behind its
    header."""
    if len(head) < REQUEST_HEAD:
        return head[:1] in (b"", b"\0")
    nameless = head[4:6] == _PRODUCE and head[12:14] in (b"\xff\xff", b"\0\0")
    return nameless and len(head) < min(HEAD, 4 + int.from_bytes(head[:4], "big"))


def _go_up(heads: list[bytes], most: int) -> bool:
    """Whether each response's correlation id is above that of the one before it, by so much at the most."""
    ids = [int.from_bytes(head[4:8], "big") for head in heads]
    return all(0 < two - one <= most for one, two in pairwise(ids))


def _is_named(head: bytes) -> bool:
    """Whether a request names its client; one of Produce must have what its body begins with, too."""
    length = int.from_bytes(head[12:14], "big", signed=True)
    if length <= 0 or not _is_printable(head):
        return False
    return head[4:6] != _PRODUCE or _produces(head)


def _produces(head: bytes) -> bool:
    """Whether what stands behind the client id reads as the body of a Produce request, as far as `head` goes: a
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
    return _is_text(head[at:body]) and _is_produced(head[body : body + 13], flexible=version >= 9)


def _is_produced(body: bytes, *, flexible: bool) -> bool:
    """Whether acks, timeout, and number and name of topics make sense, as far as `body` goes."""
    if (len(body) >= 2 and body[:2] not in _ACKS) or body[2:3] > b"\0":
        return False
    if flexible:
        return len(body) < 7 or body[6] >= 2
    count, name = body[6:10], body[12:13]
    return len(count) < 4 or (count[:2] == bytes(2) != count[2:] and _NAME.fullmatch(name) is not None)


def _is_printable(head: bytes) -> bool:
    """Whether the client id has no control characters. Where a frame's place is a guess it must not; where it is
    known a hostile one may."""
    length = max(0, int.from_bytes(head[12:14], "big", signed=True))
    return _is_text(head[14 : 14 + length])


def _is_text(raw: bytes) -> bool:
    return _TEXT.fullmatch(raw.decode("utf-8", "ignore")) is not None

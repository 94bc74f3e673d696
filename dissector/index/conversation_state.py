"""What the conversation teaches: names of topic ids, addresses of nodes, protocols of groups, who members and producers
are, the SASL mechanism of a connection, the versions that a broker offered, the software that a client is.

Read off the exchanges that tell it, once each, when first asked; what is learned later applies to earlier rows.

Invariants:
  * a frame is read at most once, and one with the same body as an earlier one (metadata, asked again and again) not
    at all;
  * what is kept grows with names, not with frames.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.index.exchange_table import NO_FRAME, ExchangeTable
from dissector.index.frame_table import FrameTable
from dissector.index.shared_state import LearnedNames, SharedState
from dissector.protocol.codec.structs import structs
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.embedded.topics import CLUSTER_METADATA, CLUSTER_METADATA_ID, NO_TOPIC_ID
from dissector.protocol.message import PREFIX, Values, read, request_layout, response_layout
from dissector.protocol.schema.api_keys import ApiKey

TEACHERS: Final = (
    ApiKey.METADATA, ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA, ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP,
    ApiKey.DESCRIBE_GROUPS, ApiKey.LIST_GROUPS, ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS, ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS, ApiKey.INIT_PRODUCER_ID, ApiKey.DESCRIBE_CLUSTER, ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE, ApiKey.STREAMS_GROUP_HEARTBEAT,
    ApiKey.STREAMS_GROUP_DESCRIBE,
)  # fmt: skip
"""APIs that name things: topics, nodes, groups, members, producers."""
STRETCH: Final = 1 << 16
"""Rows of the index that are looked at together."""
KEPT_OFFERS: Final = 64
"""Different bodies of ApiVersions responses that are read once, and as many different requests."""
CORRELATION_ID: Final = slice(PREFIX + 4, PREFIX + 8)
"""In a request's frame."""
_NONE: Final = np.zeros(0, np.int64)
_TOPIC_NAMES: Final = ("name", "topic_name", "topic")
_NODE_IDS: Final = ("node_id", "broker_id")


class ConversationState:
    """Grows as the capture is read."""

    def __init__(self, frames: FrameTable, table: ExchangeTable) -> None:
        self._frames = frames
        self._table = table
        self._read: set[int] = set()
        self._bodies: set[int] = set()
        self._looked_at = -1
        self._rows = 0
        """Rows that were looked at: a capture that grows is not to be looked at from its beginning again and again."""
        self._waiting = _NONE
        """Those of them that will tell something once they are answered."""
        self._topics = LearnedNames({CLUSTER_METADATA_ID: (-1, CLUSTER_METADATA)})
        self._groups, self._nodes, self._members, self._producers = (
            LearnedNames(),
            LearnedNames(),
            LearnedNames(),
            LearnedNames(),
        )
        self._common = DecodingContext(
            self._topics.values, self._groups.values, self._nodes.values, self._members.values, self._producers.values
        )
        self._mechanisms: dict[int, list[tuple[int, str]]] = {}
        """By connection: packet of the handshake, mechanism."""
        self._offered: dict[int, Mapping[int, tuple[int, int]]] = {}
        """By connection; a broker offers the same to all, and it is kept once."""
        self._offer = lru_cache(maxsize=KEPT_OFFERS)(_offer)
        self._software: dict[int, tuple[str, str]] = {}
        """By connection."""
        self._named_software = lru_cache(maxsize=KEPT_OFFERS)(_named_software)

    def context(self, connection: int, packet: int) -> DecodingContext:
        """What is known for a message of that connection that begins in that packet."""
        mechanisms = [name for first, name in self._mechanisms.get(connection, ()) if first <= packet]
        return replace(self._common, mechanism=mechanisms[-1]) if mechanisms else self._common

    def offered(self, connection: int) -> Mapping[int, tuple[int, int]]:
        """The versions that the server of a connection said it has, by API key; empty where it was not asked."""
        return self._offered.get(connection, {})

    @property
    def nodes(self) -> Mapping[int, str]:
        """Addresses of nodes by their ids."""
        nodes: Mapping[int, str] = self._nodes.values
        return nodes

    def software(self, connection: int) -> tuple[str, str]:
        """Name and version of the software that the client of a connection said it is (KIP-511); else empty."""
        return self._software.get(connection, ("", ""))

    def offers(self) -> Iterator[tuple[int, Mapping[int, tuple[int, int]]]]:
        """What servers offered, by connection."""
        return ((connection, offer) for connection, offer in self._offered.items() if offer)

    def topic_name(self, topic_id: str) -> str:
        """The name of a topic, or else its id."""
        return str(self._topics.values.get(topic_id, topic_id))

    def words(self) -> frozenset[str]:
        """Names and ids that were learned: of topics, groups, members, hosts."""
        topics = self._topics.values
        hosts = (address.rpartition(":")[0] for address in self.nodes.values())
        return frozenset((*topics, *topics.values(), *self._groups.values, *self._members.values, *hosts))

    def lessons(self) -> SharedState:
        """The names that were learned, for who reads another part of the capture."""
        kinds = (self._topics, self._groups, self._nodes, self._members, self._producers)
        topics, groups, nodes, members, producers = (dict(names.known) for names in kinds)
        return SharedState(topics, groups, nodes, members, producers)

    def take(self, lessons: SharedState) -> None:
        """Names that were learned elsewhere in the capture."""
        self._topics.take(lessons.topics)
        self._groups.take(lessons.groups)
        self._nodes.take(lessons.nodes)
        self._members.take(lessons.members)
        self._producers.take(lessons.producers)

    def learn(self, generation: int) -> None:
        """Read what has come since the last time; `generation` changes when anything has."""
        if generation == self._looked_at:
            return
        self._looked_at = generation
        table = self._table
        rows = np.concatenate([self._waiting, *self._telling()])
        answered = table.response.values[rows] != NO_FRAME
        self._waiting = rows[~answered]
        for row in rows[answered].tolist():
            response = int(table.response.values[row])
            if response not in self._read:
                self._read.add(response)
                self._learn_from(row, response)

    def _telling(self) -> Iterator[Int64]:
        """New rows that may teach something."""
        table = self._table
        first, self._rows = self._rows, len(table)
        for start in range(first, self._rows, STRETCH):
            stretch = slice(start, min(start + STRETCH, self._rows))
            telling = np.isin(table.api_key.values[stretch], TEACHERS) & (table.request.values[stretch] != NO_FRAME)
            yield start + np.flatnonzero(telling)

    @property
    def waiting(self) -> Int64:
        """Rows that will tell something once they are answered."""
        return self._waiting

    def keep(self, connections: set[int]) -> None:
        """Forget what is known of connections but these, and which bodies were read."""
        self._read.clear()
        self._bodies.clear()
        self._mechanisms = {each: known for each, known in self._mechanisms.items() if each in connections}
        self._offered = {each: known for each, known in self._offered.items() if each in connections}
        self._software = {each: known for each, known in self._software.items() if each in connections}

    def rearranged(self) -> None:
        """Rows have changed their places: look at all of them again."""
        self._rows, self._waiting = 0, _NONE

    def _learn_from(self, row: int, response: int) -> None:
        table = self._table
        key, version = int(table.api_key.values[row]), int(table.version.values[row])
        data, whole = self._frames.read(response)
        connection = int(table.connection.values[row])
        if key == ApiKey.API_VERSIONS:
            offered = self._offer(version, data[PREFIX + 4 : whole])
            self._offered[connection] = offered or self._offered.get(connection, {})
            asked, whole = self._frames.read(int(table.request.values[row]))
            head, tail = asked[: CORRELATION_ID.start], asked[CORRELATION_ID.stop : whole]
            software = self._named_software(version, head, tail)
            if software[0]:
                self._software[connection] = software
            return
        if key not in (ApiKey.SASL_HANDSHAKE, ApiKey.INIT_PRODUCER_ID) and not self._is_new(key, version, data):
            return
        asked, asked_whole = self._frames.read(int(table.request.values[row]))
        request = read(asked, request_layout(key, version), asked_whole)
        answer = read(data, response_layout(key, version, data), whole).body
        packet = int(table.packet.values[row])
        for values in (request.body, answer):
            for struct in structs(values):
                self._learn_names(struct, packet)
        member = answer.get("member_id") or request.body.get("member_id")
        client_id = request.header.get("client_id")
        if isinstance(member, str) and isinstance(client_id, str):
            self._members.learn(member, client_id, packet)
        transactional_id, producer_id = request.body.get("transactional_id"), answer.get("producer_id")
        if key == ApiKey.INIT_PRODUCER_ID and isinstance(transactional_id, str) and isinstance(producer_id, int):
            self._producers.learn(producer_id, transactional_id, packet)
        if key == ApiKey.SASL_HANDSHAKE:
            self._mechanisms.setdefault(connection, []).append((packet, str(request.body.get("mechanism"))))
            self._mechanisms[connection].sort()

    def _is_new(self, key: int, version: int, data: bytes) -> bool:
        body = hash((key, version, data[PREFIX + 4 :]))
        new = body not in self._bodies
        self._bodies.add(body)
        return new

    def _learn_names(self, struct: Mapping[str, Any], packet: int) -> None:
        topic_id = struct.get("topic_id")
        if isinstance(topic_id, str):
            name = next((struct[each] for each in _TOPIC_NAMES if isinstance(struct.get(each), str)), None)
            if name and topic_id != NO_TOPIC_ID:
                self._topics.learn(topic_id, name, packet)
        group, protocol = struct.get("group_id"), struct.get("protocol_type")
        if isinstance(group, str) and isinstance(protocol, str) and protocol:
            self._groups.learn(group, protocol, packet)
        host, port = struct.get("host"), struct.get("port")
        node = next((struct[each] for each in _NODE_IDS if isinstance(struct.get(each), int)), None)
        if isinstance(host, str) and isinstance(port, int) and isinstance(node, int) and node >= 0:
            self._nodes.learn(node, f"{host}:{port}", packet)


def _offer(version: int, body: bytes) -> Mapping[int, tuple[int, int]]:
    """What the body of an ApiVersions response offers; it answers a request of that version."""
    data = bytes(PREFIX + 4) + body
    return dict(offers(read(data, response_layout(ApiKey.API_VERSIONS, version, data)).body))


def _named_software(version: int, head: bytes, tail: bytes) -> tuple[str, str]:
    """What an ApiVersions request says of its sender; the request but for its correlation id."""
    body = read(head + bytes(4) + tail, request_layout(ApiKey.API_VERSIONS, version)).body
    name, number = body.get("client_software_name"), body.get("client_software_version")
    return (name, number) if isinstance(name, str) and isinstance(number, str) else ("", "")


def offers(answer: Values) -> Iterator[tuple[int, tuple[int, int]]]:
    """The versions that an ApiVersions response offers, by API key. One that says no may name a part of them."""
    keys = None if answer.get("error_code") else answer.get("api_keys")
    for each in keys if isinstance(keys, list) else ():
        yield each["api_key"], (each["min_version"], each["max_version"])

"""What messages teach about others: names of topic ids, addresses of nodes, protocols of groups, client ids of members,
producers' transactional ids, a connection's SASL mechanism. What ApiVersions says is in `version_exchanges`.

It is read from the few exchanges that have such things, when it is first needed. What is learned from a later exchange
applies to earlier rows as well.

Invariants:
  * a frame is read at most once; one with the same body as an earlier one (metadata, requested again and again) is only
    compared;
  * what is kept grows with names, and by some bytes of columns with frames and connections.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.columns import Column, unique
from dissector.core.own_lock import OwnLock
from dissector.index.equal_messages import first_equal
from dissector.index.exchange_table import NO_FRAME, ExchangeTable
from dissector.index.frame_table import NO_NUMBER, FrameTable, equal_numbers
from dissector.index.secrecy import Opened, Secrecy
from dissector.index.shared_state import LearnedNames, SharedState
from dissector.index.version_exchanges import VersionExchanges
from dissector.protocol.codec.structs import structs
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.embedded.topics import CLUSTER_METADATA, CLUSTER_METADATA_ID, NO_TOPIC_ID
from dissector.protocol.message import Decoded, read
from dissector.protocol.message_layout import REQUEST_ID, RESPONSE_ID, request_layout, response_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.field_names import TOPIC_NAMES

TEACHING_APIS: Final = (
    ApiKey.METADATA, ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA, ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP,
    ApiKey.DESCRIBE_GROUPS, ApiKey.LIST_GROUPS, ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS, ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS, ApiKey.INIT_PRODUCER_ID, ApiKey.DESCRIBE_CLUSTER, ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE, ApiKey.STREAMS_GROUP_HEARTBEAT,
    ApiKey.STREAMS_GROUP_DESCRIBE,
)  # fmt: skip
"""APIs that name things: topics, nodes, groups, members, producers."""
OF_REQUEST: Final = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.INIT_PRODUCER_ID)
"""Those of which the request teaches something, whatever the response is."""
ROWS_PER_STEP: Final = 1 << 16
"""Rows of the index whose columns are compared together."""
CACHE_SIZE: Final = 256
"""Contexts of messages with secrets that are kept."""
MOST_BODIES: Final = 1 << 16
"""Bodies of responses that are known."""
_NONE: Final = np.zeros(0, np.int64)
_MECHANISM: Final = re.compile(r"[A-Za-z0-9_-]{1,20}")
_NODE_IDS: Final = ("node_id", "broker_id")


class ConversationState:
    """Grows as the capture is read."""

    def __init__(self, frames: FrameTable, table: ExchangeTable, connections: Opened) -> None:
        self._frames = frames
        self._table = table
        self._secrecy = Secrecy(frames, table, connections)
        self._read = Column(np.bool_)
        """Which frames are responses that were read."""
        self._bodies: set[int] = set()
        """Hashes of their bodies: the last ones."""
        self._learning = OwnLock()
        """Held while it learns: who comes meanwhile waits for it."""
        self._generation = self._generation_of_names = -1
        self._rows = 0
        """Rows that were searched: a capture that grows is not searched from its beginning again and again."""
        self._pending = _NONE
        """Those of them that will teach something once their response is there."""
        self._topics = LearnedNames({CLUSTER_METADATA_ID: (-1, CLUSTER_METADATA)})
        self._groups, self._nodes = LearnedNames(), LearnedNames()
        self._members, self._producers = LearnedNames(), LearnedNames()
        self._common = DecodingContext(
            self._topics.values, self._groups.values, self._nodes.values, self._members.values, self._producers.values
        )
        self._secret_contexts: dict[tuple[str, bool, bool], DecodingContext] = {}
        """By mechanism, empty where that is not known; by whether there was a request with secrets; and by whether one
        may be in a message that was cut."""
        self._mechanisms: dict[int, list[tuple[int, str]]] = {}
        """By connection: packet of the handshake, mechanism; empty of one that can't be read."""
        self.versions = VersionExchanges(frames, table)

    @property
    def common(self) -> DecodingContext:
        """What is known for messages of all connections; it fills as more is learned."""
        return self._common

    def context(self, connection: int, packet: int) -> DecodingContext:
        """What is known for a message of that connection that begins in that packet."""
        if not self._secrecy.may_have_secrets(connection, packet):
            return self._common
        mechanisms = [name for first, name in self._mechanisms.get(connection, ()) if first <= packet]
        mechanism = mechanisms[-1] if mechanisms else ""
        has_secrets = self._secrecy.has_secrets(connection)
        may_cut = has_secrets or self._secrecy.may_cut_secrets(connection, packet)
        found = self._secret_contexts.get((mechanism, has_secrets, may_cut))
        if found is None:
            found = replace(
                self._common, mechanism=mechanism or None, may_have_secrets=True, has_secrets=has_secrets,
                may_cut_secrets=may_cut,
            )  # fmt: skip
            if len(self._secret_contexts) < CACHE_SIZE:
                self._secret_contexts[mechanism, has_secrets, may_cut] = found
        return found

    def begins_without_login(self, connection: int, packet: int) -> bool:
        """Whether a connection can't have a login from its beginning on (`Secrecy.begins_without_login`)."""
        return self._secrecy.begins_without_login(connection, packet)

    @property
    def nodes(self) -> Mapping[int, str]:
        """Addresses of nodes by their ids."""
        nodes: Mapping[int, str] = self._nodes.values
        return nodes

    @property
    def topic_names(self) -> Mapping[str, str]:
        """Names of topics by their ids."""
        names: Mapping[str, str] = self._topics.values
        return names

    def topic_name(self, topic_id: str) -> str:
        """The name of a topic, or else its id."""
        return str(self._topics.values.get(topic_id, topic_id))

    def known_names(self) -> frozenset[str]:
        """Names and ids that were learned: of topics, groups, members, hosts."""
        topics = self._topics.values
        hosts = (address.rpartition(":")[0] for address in self.nodes.values())
        return frozenset((*topics, *topics.values(), *self._groups.values, *self._members.values, *hosts))

    def shared_state(self) -> SharedState:
        """The names that were learned, for other partitions of the capture."""
        kinds = (self._topics, self._groups, self._nodes, self._members, self._producers)
        topics, groups, nodes, members, producers = (dict(names.known) for names in kinds)
        return SharedState(topics, groups, nodes, members, producers)

    def merge(self, state: SharedState) -> None:
        """Add names that were learned elsewhere."""
        self._topics.merge(state.topics)
        self._groups.merge(state.groups)
        self._nodes.merge(state.nodes)
        self._members.merge(state.members)
        self._producers.merge(state.producers)

    def update(self, generation: int) -> None:
        """Read what has come since the last update; `generation` changes when anything has."""
        with self._learning:
            if generation != self._generation:
                self._generation = generation
                self._secrecy.update()
                self.learn_names(generation)

    def learn_names(self, generation: int) -> None:
        """Read the same, but for which connections may have secrets."""
        with self._learning:
            if generation != self._generation_of_names:
                self._generation_of_names = generation
                self._learn_new()

    def _learn_new(self) -> None:
        table = self._table
        rows = np.concatenate([self._pending, *self._new_teaching_rows()])
        has_response = table.response.values[rows] != NO_FRAME
        self._pending = rows[~has_response]
        responses = table.response.values[rows]
        self._read.grow(len(self._frames))
        is_new = has_response.copy()
        is_new[has_response] = ~self._read.values[responses[has_response]]
        rows, responses = rows[is_new], responses[is_new]
        self._read.values[responses] = True
        keys = table.api_key.values[rows]
        self.versions.learn(rows[keys == ApiKey.API_VERSIONS])
        self._learn_mechanisms(rows[keys == ApiKey.SASL_HANDSHAKE])
        self._learn_producers(rows[keys == ApiKey.INIT_PRODUCER_ID])
        names_things = ~np.isin(keys, OF_REQUEST)
        rows, responses = rows[names_things], responses[names_things]
        different = unique(first_equal(table, self._frames, rows, is_request=False))
        for row, response in zip(rows[different].tolist(), responses[different].tolist(), strict=True):
            self._learn_from(row, response)

    @property
    def pending_rows(self) -> Int64:
        """Rows that will teach something once their response is there."""
        return self._pending

    def retain(self, connections: set[int]) -> None:
        """Get ready for a checkpoint: forget other connections, and which bodies were read."""
        self._read = Column(np.bool_)
        self._bodies.clear()
        self._secrecy.retain(connections)
        self._mechanisms = {each: known for each, known in self._mechanisms.items() if each in connections}
        self.versions.retain(connections)

    def restart_search(self) -> None:
        """Search all rows again at the next update, as they have changed their numbers."""
        self._rows, self._pending = 0, _NONE
        self._secrecy.restart_search()

    def _new_teaching_rows(self) -> Iterator[Int64]:
        """New rows that may teach something."""
        table = self._table
        first, self._rows = self._rows, len(table)
        for start in range(first, self._rows, ROWS_PER_STEP):
            step = slice(start, min(start + ROWS_PER_STEP, self._rows))
            teaches = np.isin(table.api_key.values[step], TEACHING_APIS) & (table.request.values[step] != NO_FRAME)
            yield start + np.flatnonzero(teaches)

    def _learn_from(self, row: int, response_frame: int) -> None:
        table = self._table
        key, version = int(table.api_key.values[row]), int(table.version.values[row])
        data, whole = self._frames.read(response_frame)
        if not self._is_new(key, version, data):
            return
        request_data, request_whole = self._frames.read(int(table.request.values[row]))
        request = read(request_data, request_layout(key, version), request_whole)
        response = read(data, response_layout(key, version, data), whole).body
        packet = int(table.packet.values[row])
        for values in (request.body, response):
            for struct in structs(values):
                self._learn_names(struct, packet)
        member = response.get("member_id") or request.body.get("member_id")
        client_id = request.header.get("client_id")
        if isinstance(member, str) and isinstance(client_id, str):
            self._members.learn(member, client_id, packet)

    def _requests(self, rows: Int64) -> Iterator[tuple[int, Decoded]]:
        """These rows, of one API, and their requests. Those that are the same but for the correlation id are read
        once."""
        frames, versions = self._table.request.values[rows], self._table.version.values[rows]
        keys = self._table.api_key.values[rows]
        numbers = equal_numbers(self._frames, frames, REQUEST_ID.stop, head=REQUEST_ID.start)
        known: dict[int, Decoded] = {}
        columns = (rows, frames, keys, versions, numbers)
        for row, frame, key, version, number in zip(*(each.tolist() for each in columns), strict=True):
            request = known.get(number)
            if request is None:
                data, whole = self._frames.read(frame)
                request = read(data, request_layout(key, version), whole)
                if number != NO_NUMBER:
                    known[number] = request
            yield row, request

    def _learn_mechanisms(self, rows: Int64) -> None:
        """Learn from exchanges of SaslHandshake."""
        table = self._table
        for row, request in self._requests(rows):
            of_connection = self._mechanisms.setdefault(int(table.connection.values[row]), [])
            of_connection.append((int(table.packet.values[row]), _mechanism(request)))
            of_connection.sort()

    def _learn_producers(self, rows: Int64) -> None:
        """Learn from exchanges of InitProducerId. The responses differ: each producer has an id of its own."""
        table = self._table
        for row, request in self._requests(rows):
            transactional_id = request.body.get("transactional_id")
            if isinstance(transactional_id, str):
                data, whole = self._frames.read(int(table.response.values[row]))
                layout = response_layout(ApiKey.INIT_PRODUCER_ID, int(table.version.values[row]), data)
                producer_id = read(data, layout, whole).body.get("producer_id")
                if isinstance(producer_id, int):
                    self._producers.learn(producer_id, transactional_id, int(table.packet.values[row]))

    def _is_new(self, key: int, version: int, data: bytes) -> bool:
        body = hash((key, version, data[RESPONSE_ID.stop :]))
        new = body not in self._bodies
        if len(self._bodies) >= MOST_BODIES:
            self._bodies.clear()  # one that comes again teaches what is known
        self._bodies.add(body)
        return new

    def _learn_names(self, struct: Mapping[str, Any], packet: int) -> None:
        topic_id = struct.get("topic_id")
        if isinstance(topic_id, str):
            name = next((struct[each] for each in TOPIC_NAMES if isinstance(struct.get(each), str)), None)
            if name and topic_id != NO_TOPIC_ID:
                self._topics.learn(topic_id, name, packet)
        group, protocol = struct.get("group_id"), struct.get("protocol_type")
        if isinstance(group, str) and isinstance(protocol, str) and protocol:
            self._groups.learn(group, protocol, packet)
        host, port = struct.get("host"), struct.get("port")
        node = next((struct[each] for each in _NODE_IDS if isinstance(struct.get(each), int)), None)
        if isinstance(host, str) and isinstance(port, int) and isinstance(node, int) and node >= 0:
            self._nodes.learn(node, f"{host}:{port}", packet)


def _mechanism(handshake: Decoded) -> str:
    """The mechanism that a SaslHandshake request names, in upper case (RFC 4422, 3.1); empty if it can't be read."""
    name = handshake.body.get("mechanism")
    is_sure = isinstance(name, str) and not handshake.findings and not handshake.rest
    return str(name).upper() if is_sure and _MECHANISM.fullmatch(str(name)) else ""

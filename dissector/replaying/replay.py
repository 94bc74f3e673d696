"""Sends the requests of a recording to a broker, as they were recorded, and keeps what it answers.

Each recorded connection is one connection here. A request goes out when all before it have gone out, and those whose
responses had come before it was recorded are answered: so a group whose members wait for each other can join.

Invariants:
  * nothing that writes is sent unless that is allowed, and nothing that only brokers send ever is;
  * ids and epochs are those that the broker gave (`own_ids`); everything else in a request is as it was recorded;
  * a response that does not come ends its connection, and the next request of it has a new one.
"""

import asyncio
import heapq
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from dissector.conversation.turns import Conversation
from dissector.core.addresses import BrokerAddress
from dissector.core.text import clean, counted
from dissector.protocol.codec.reader import reader
from dissector.protocol.frame import frame_bytes
from dissector.protocol.message import Values, read
from dissector.protocol.message_layout import PREFIX, request_layout, response_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.loader import api
from dissector.protocol.wire import EncodeError
from dissector.proxy_server.settings import UpstreamTls
from dissector.proxy_server.upstream import ConnectError, TlsError, tls_context
from dissector.recorded_server.exchanges import RecordedExchange, RecordedExchanges
from dissector.replaying.cluster import WAIT_SECONDS, AskedCluster, look_at
from dissector.replaying.connection import NoAnswerError, ReplayConnection, SentFrame, with_correlation_id
from dissector.replaying.effects import Effect, creates_topics, effect_of
from dissector.replaying.logins import Login, LoginError
from dissector.replaying.merging import merged
from dissector.replaying.own_ids import OwnIds
from dissector.replaying.replayed_connection import KeptConversation, KeptRequest, ReplayedConnection
from dissector.replaying.routing import LEADERS, Routes

MOST_BYTES: Final = 1 << 30
"""Bytes that are sent and received at most: they are held until they are compared."""
MOST_IN_FLIGHT: Final = 1_000
_ASK_AGAIN: Final = frozenset((
    ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_CONTROLLER,
    ErrorCode.CONCURRENT_TRANSACTIONS,
))  # fmt: skip
"""Brokers that answer so did nothing: they are not the ones to ask, or not yet ready."""
_NOT_THERE: Final = frozenset((ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID))
"""So they answer for a moment after a topic was created, too."""
_PAUSE: Final = 0.1
REPEATABLE: Final = frozenset(("PLAIN", "OAUTHBEARER"))
"""SASL mechanisms whose recorded tokens a broker may accept again."""


class ReplayError(Exception):
    """Nothing can be replayed, or not all of it; one plain line."""


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """Where to send what."""

    broker: BrokerAddress
    tls: UpstreamTls | None = None
    login: Login | None = None
    allow_writes: bool = False
    recorded_login: bool = False
    """Whether recorded tokens are sent."""
    speed: float | None = None
    """How many times as fast as recorded; None for as fast as the broker answers."""
    timeout: float = 30.0
    """Seconds that a response may take longer than the recorded one."""


@dataclass(slots=True)
class ReplayOutcome:
    """What became of a replay."""

    rows: list[int] = field(default_factory=list)
    """Numbers of the recorded exchanges that were sent, from 1."""
    conversations: list[Conversation] = field(default_factory=list)
    unanswered: Counter[str] = field(default_factory=Counter)
    """Why responses did not come."""


class Replay:
    """One replay."""

    def __init__(self, recording: RecordedExchanges, settings: ReplaySettings, say: Callable[[str], object]) -> None:
        self._recording = recording
        self._settings = settings
        self._say = say
        self._ids = OwnIds(recording.topics)
        self._outcome = ReplayOutcome()
        self._context: ssl.SSLContext | None = None
        self._connections: list[ReplayConnection] = []
        self._replayed: dict[int, ReplayedConnection] = {}
        self._kept: list[KeptConversation] = []
        self._correlation_ids = count(1)
        self._routes: Routes
        self._cluster: AskedCluster
        self.left_out: dict[str, Counter[str]] = {}
        """How many requests of each API are not sent, by the reason."""

    async def run(self) -> ReplayOutcome:
        """Send everything that may be sent. Raises `ReplayError`."""
        try:
            self._context = None if self._settings.tls is None else tls_context(self._settings.tls)
            control = await self._open(self._settings.broker, self._settings.login or self._recorded_login())
            cluster = await look_at(control)
        except (TlsError, ConnectError, LoginError) as error:
            raise ReplayError(str(error)) from None
        except (NoAnswerError, TimeoutError) as error:
            why = str(error) or "no answer to ApiVersions and Metadata"
            hint = "" if self._settings.login else "; it may want TLS (--tls) or a login (--user)"
            raise ReplayError(f"{self._settings.broker}: {why}{hint}") from None
        self._cluster, self._routes = cluster, Routes(cluster, control)
        self._learn_topics()
        chosen = self._chosen(cluster)
        try:
            await self._send_all(chosen, cluster, control)
        finally:
            control.close()
            for each in self._connections:
                each.close()
        self._outcome.conversations = [each.conversation for each in self._kept]
        return self._outcome

    def _learn_topics(self) -> None:
        """Know the ids of topics and the epochs of leaders as the cluster last had them."""
        self._ids.topic_ids |= self._cluster.topic_ids
        self._ids.leader_epochs |= self._cluster.leader_epochs

    def _chosen(self, cluster: AskedCluster) -> list[RecordedExchange]:
        """Return the exchanges whose requests are sent, in the order of time."""
        mechanisms: dict[int, str] = {}
        found = []
        for each in sorted(self._recording.exchanges, key=lambda each: (each.time_ns, each.number)):
            if each.key == ApiKey.SASL_HANDSHAKE:
                mechanisms[each.connection] = str(each.asked.get("mechanism"))
            why = self._reason_against(each, cluster, mechanisms.get(each.connection, ""))
            if why:
                known = api(each.key)
                name = known.name if known else f"API {each.key}"
                self.left_out.setdefault(why, Counter())[name] += 1
            else:
                found.append(each)
        return found

    def _reason_against(self, each: RecordedExchange, cluster: AskedCluster, mechanism: str) -> str:
        """Return why a request is not sent; empty if it is."""
        if each.is_opaque:
            return "can't be read"
        effect = effect_of(each.key, each.asked)
        if effect is Effect.BETWEEN_NODES:
            return "only brokers send them"
        if effect is Effect.LOGS_IN:
            if not self._settings.recorded_login or self._settings.login is not None:
                return "recorded logins (--user logs in, --recorded-login sends PLAIN and OAUTHBEARER again)"
            return (
                "" if mechanism in REPEATABLE else f"a login with {clean(mechanism)} can't be repeated: --user logs in"
            )
        if self._settings.allow_writes:
            return ""
        if effect is Effect.WRITES:
            return "they write (--allow-writes)"
        if creates_topics(each.key, each.asked):
            named = {topic.get("name") or self._recording.topics.get(str(topic.get("topic_id"))) for topic in
                     each.asked["topics"]}  # fmt: skip
            if named - cluster.topics - {None}:
                return "they may create topics that the broker does not have (--allow-writes)"
        return ""

    async def _send_all(self, chosen: list[RecordedExchange], cluster: AskedCluster, control: ReplayConnection) -> None:
        loop = asyncio.get_running_loop()
        for each in chosen:
            self._replayed.setdefault(each.connection, ReplayedConnection([])).exchanges.append(each)
        for replayed in self._replayed.values():
            replayed.home = await cluster.home(control, replayed.exchanges)
        in_flight: list[tuple[int, int, asyncio.Task[None]]] = []
        begin = loop.time()
        for number, each in enumerate(chosen):
            while in_flight and (in_flight[0][0] <= each.time_ns or len(in_flight) >= MOST_IN_FLIGHT):
                await heapq.heappop(in_flight)[2]
            if self._settings.speed is not None:
                due = begin + (each.time_ns - chosen[0].time_ns) / 1e9 / self._settings.speed
                await asyncio.sleep(max(0.0, due - loop.time()))
            task = await self._send(each)
            self._outcome.rows.append(each.number)
            if task is not None:
                heapq.heappush(in_flight, (each.time_ns + each.latency_ns, number, task))
        for _, _, task in sorted(in_flight, key=lambda waiting: waiting[:2]):
            await task

    async def _send(self, each: RecordedExchange) -> "asyncio.Task[None] | None":
        replayed = self._replayed[each.connection]
        home = replayed.home or self._settings.broker
        sent, parts = await self._parts(each, replayed, home)
        connections = {broker: await self._connection(replayed, broker) for broker in parts}
        try:
            frames = {
                broker: each.request if part == each.asked else _frame(each, part) for broker, part in parts.items()
            }
            whole = frames[home] if len(frames) == 1 and home in frames else _frame(each, sent)
        except EncodeError as error:
            raise ReplayError(f"row {each.number}: {error}") from None
        waits = each.response is not None
        try:
            under_way = {broker: connections[broker].send(frame, waits=waits) for broker, frame in frames.items()}
        except NoAnswerError as error:
            self._outcome.unanswered[clean(str(error))] += 1
            return None
        first = next(iter(under_way.values()))
        assert replayed.kept is not None
        kept = replayed.kept.sent(with_correlation_id(whole, first.correlation_id), waits=waits)
        for connection in connections.values():
            await connection.drain()
        if not waits:
            return None
        finishing = self._finish(each, sent, under_way, replayed, connections, replayed.kept, kept)
        return asyncio.get_running_loop().create_task(finishing)

    async def _parts(
        self, each: RecordedExchange, replayed: ReplayedConnection, home: BrokerAddress
    ) -> tuple[Values, dict[BrokerAddress, Values]]:
        """Return a request with ids of the cluster, and what each broker gets of it. Raises `ReplayError`."""
        if len(self._cluster.nodes) < 2 or each.is_opaque:
            sent = self._ids.request(each.asked)
            return sent, {home: sent}
        try:
            if each.key in LEADERS:
                await self._cluster.find_leaders(self._routes.control, _topics(each))
                self._learn_topics()
            sent = self._ids.request(each.asked)
            parts = await self._routes.parts(each.key, sent, home)
        except (NoAnswerError, TimeoutError) as error:
            raise ReplayError(f"{self._settings.broker}: {error or 'no answer to Metadata'}") from None
        return sent, replayed.sessions.parts(each.key, sent, parts)

    async def _finish(
        self,
        each: RecordedExchange,
        sent: Values,
        under_way: Mapping[BrokerAddress, SentFrame],
        replayed: ReplayedConnection,
        connections: Mapping[BrokerAddress, ReplayConnection],
        conversation: KeptConversation,
        kept: KeptRequest,
    ) -> None:
        """Wait for the response, or for those of which it is made, and learn from it."""
        known = api(each.key)
        name = f"{known.name if known else each.key} v{each.version}"
        answers: dict[BrokerAddress, bytes] = {}
        for broker, waiting in under_way.items():
            try:
                timeout = self._settings.timeout + each.latency_ns / 1e9
                answers[broker] = await asyncio.wait_for(waiting.future, timeout)
            except TimeoutError:
                self._outcome.unanswered[f"{name}: no response within {self._settings.timeout:g} s"] += 1
                connections[broker].close()
            except NoAnswerError as error:
                self._outcome.unanswered[f"{name}: the broker {error}"] += 1
        if len(answers) < len(under_way):
            conversation.received(kept, None)
            return
        bodies = {broker: self._body(each, frame) for broker, frame in answers.items()}
        for broker, body in bodies.items():
            replayed.sessions.learn(each.key, broker, body)
        if self._was_refused(each, bodies.values()):
            again = await self._again(each, replayed)
            answers = again or answers
            bodies = {broker: self._body(each, frame) for broker, frame in answers.items()}
        body, first = merged([*bodies.values()]), next(iter(answers.values()))
        conversation.received(kept, first if len(answers) == 1 else _merged_frame(each, first, body))
        self._ids.learn(each, body)
        if each.key in (ApiKey.CREATE_TOPICS, ApiKey.METADATA):
            self._cluster.created()

    def _body(self, each: RecordedExchange, frame: bytes) -> Values:
        return read(frame, response_layout(each.key, each.version, frame)).body

    def _was_refused(self, each: RecordedExchange, bodies: Iterable[Values]) -> bool:
        """Whether brokers of a cluster did nothing, as others are to be asked, or as they are not ready; and the
        recorded one did not say that."""
        if len(self._cluster.nodes) < 2:
            return False
        refusals = _ASK_AGAIN | _NOT_THERE if _topics(each) <= self._cluster.topics else _ASK_AGAIN
        codes = {code for body in bodies for code in _codes(body)}
        return bool(codes) and codes <= refusals and not refusals & {*_codes(each.answered)}

    async def _again(self, each: RecordedExchange, replayed: ReplayedConnection) -> dict[BrokerAddress, bytes]:
        """Look for the leaders and the coordinator again, and ask again, for a while, as clients do; return the last
        answers, none where a broker gave none. Sessions begin again."""
        until = time.monotonic() + WAIT_SECONDS
        home = replayed.home or self._settings.broker
        answers: dict[BrokerAddress, bytes] = {}
        while time.monotonic() < until:
            await asyncio.sleep(_PAUSE)
            self._routes.moved()
            _, parts = await self._parts(each, replayed, home)
            try:
                for broker, part in parts.items():
                    connection = await self._connection(replayed, broker)
                    sent = connection.send(_frame(each, part), waits=True)
                    answers[broker] = await asyncio.wait_for(sent.future, self._settings.timeout)
            except (NoAnswerError, TimeoutError):
                return {}
            answers = {broker: answers[broker] for broker in parts}
            bodies = {broker: self._body(each, frame) for broker, frame in answers.items()}
            for broker, body in bodies.items():
                replayed.sessions.learn(each.key, broker, body)
            if not self._was_refused(each, bodies.values()):
                break
        return answers

    async def _connection(self, replayed: ReplayedConnection, broker: BrokerAddress) -> ReplayConnection:
        """Return the connection to a broker that stands for a recorded one, open. Raises `ReplayError`."""
        found = replayed.open.get(broker)
        if found is None or found.is_closed:
            if sum(each.size for each in self._kept) > MOST_BYTES:
                raise ReplayError(f"more than {MOST_BYTES >> 30} GiB were sent and received: replay only a part")
            try:
                made = await self._open(broker, self._settings.login)
            except (ConnectError, LoginError) as error:
                if broker == self._settings.broker:
                    raise ReplayError(str(error)) from None
                self._say(f"{error}; its requests go to {self._settings.broker}")
                made = await self._connection(replayed, self._settings.broker)
            if found is not None or replayed.kept is None:
                replayed.kept = KeptConversation(made)
                self._kept.append(replayed.kept)
            replayed.open[broker] = made
        return replayed.open[broker]

    def _recorded_login(self) -> Login | None:
        """Return who logs in with PLAIN in the recording, if that may be sent again: to look at the cluster first."""
        for each in self._recording.exchanges if self._settings.recorded_login else ():
            parts = (each.asked.get("auth_bytes") or b"").split(b"\0") if each.key == ApiKey.SASL_AUTHENTICATE else []
            if len(parts) == 3 and not each.has_error:
                return Login("PLAIN", parts[1].decode(errors="replace"), parts[2].decode(errors="replace"))
        return None

    async def _open(self, broker: BrokerAddress, login: Login | None) -> ReplayConnection:
        made = await ReplayConnection.open(broker, self._settings.tls, self._context, login, self._correlation_ids)
        self._connections.append(made)
        return made


def _frame(each: RecordedExchange, asked: Values) -> bytes:
    """Write a request with other values. Raises `EncodeError`."""
    layout = request_layout(each.key, each.version)
    assert layout.header is not None
    header, _ = reader(layout.header, layout.header_version)(each.request, PREFIX, len(each.request))
    return frame_bytes(layout, header, asked)


def _merged_frame(each: RecordedExchange, first: bytes, body: Values) -> bytes:
    """Write a response that was made of several, with the header of the first one."""
    layout = response_layout(each.key, each.version, first)
    if layout.header is None or layout.body is None:
        return first
    header, _ = reader(layout.header, layout.header_version)(first, PREFIX, len(first))
    try:
        return frame_bytes(layout, header, body)
    except EncodeError:
        return first


def _topics(each: RecordedExchange) -> set[str]:
    """Return the topics that a request names."""
    partitions = {entity[0][1] for entity in each.entities if [name for name, _ in entity] == ["name", "index"]}
    return {str(name) for name in partitions}


def _codes(values: object) -> Iterator[int]:
    """Yield the error codes in a body: those of partitions, and no zero of what is around them."""
    if isinstance(values, list):
        for each in values:
            yield from _codes(each)
    elif isinstance(values, Mapping):
        inner = [code for value in values.values() for code in _codes(value)]
        own = values.get("error_code")
        yield from inner
        if isinstance(own, int) and (own or not inner):
            yield own


def left_out_words(left_out: dict[str, Counter[str]]) -> list[str]:
    """Return lines that say what was not sent."""
    lines = []
    for why, counts in left_out.items():
        names = ", ".join(f"{name} {count:,}" for name, count in counts.most_common())
        lines.append(f"left out {counted(counts.total(), 'request')}: {why}: {names}")
    return lines

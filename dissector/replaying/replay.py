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
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from dissector.conversation.turns import Conversation
from dissector.core.addresses import BrokerAddress
from dissector.core.text import clean, counted
from dissector.protocol.codec.reader import reader
from dissector.protocol.frame import frame_bytes
from dissector.protocol.message import PREFIX, Values, read, request_layout, response_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api
from dissector.protocol.wire import EncodeError
from dissector.proxy_server.settings import UpstreamTls
from dissector.proxy_server.upstream import ConnectError, TlsError, tls_context
from dissector.recorded_server.exchanges import RecordedExchange, RecordedExchanges
from dissector.replaying.cluster import AskedCluster, look_at
from dissector.replaying.connection import NoAnswerError, ReplayConnection
from dissector.replaying.effects import Effect, creates_topics, effect_of
from dissector.replaying.logins import Login, LoginError
from dissector.replaying.own_ids import OwnIds

MOST_BYTES: Final = 1 << 30
"""Bytes that are sent and received at most: they are held until they are compared."""
MOST_IN_FLIGHT: Final = 1_000
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
class _Sending:
    """A recorded connection, and the one that stands for it."""

    exchanges: list[RecordedExchange]
    current: ReplayConnection | None = None
    broker: BrokerAddress | None = None


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
        self._sendings: dict[int, _Sending] = {}
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
        self._ids.topic_ids |= cluster.topic_ids
        self._ids.leader_epochs |= cluster.leader_epochs
        chosen = self._chosen(cluster)
        try:
            await self._send_all(chosen, cluster, control)
        finally:
            control.close()
            for each in self._connections:
                each.close()
        self._outcome.conversations = [
            Conversation(each.client, each.server, each.turns)
            for each in self._connections
            if each is not control and each.turns
        ]
        return self._outcome

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
            self._sendings.setdefault(each.connection, _Sending([])).exchanges.append(each)
        for sending in self._sendings.values():
            sending.broker = await cluster.broker_of(control, sending.exchanges)
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
        connection = await self._connection(self._sendings[each.connection])
        sent = self._ids.request(each.asked)
        try:
            frame = each.request if sent == each.asked else _frame(each, sent)
        except EncodeError as error:
            raise ReplayError(f"row {each.number}: {error}") from None
        try:
            future = connection.send(frame, waits=each.response is not None)
        except NoAnswerError as error:
            self._outcome.unanswered[clean(str(error))] += 1
            return None
        await connection.drain()
        return asyncio.get_running_loop().create_task(self._finish(each, sent, future, connection))

    async def _finish(
        self, each: RecordedExchange, sent: Values, future: "asyncio.Future[bytes]", connection: ReplayConnection
    ) -> None:
        """Wait for a response, and learn from it."""
        if each.response is None:
            return
        known = api(each.key)
        name = f"{known.name if known else each.key} v{each.version}"
        try:
            frame = await asyncio.wait_for(future, self._settings.timeout + each.latency_ns / 1e9)
        except TimeoutError:
            self._outcome.unanswered[f"{name}: no response within {self._settings.timeout:g} s"] += 1
            connection.close()
            return
        except NoAnswerError as error:
            self._outcome.unanswered[f"{name}: the broker {error}"] += 1
            return
        self._ids.learn(each, read(frame, response_layout(each.key, each.version, frame)).body)

    async def _connection(self, sending: _Sending) -> ReplayConnection:
        """Return the connection that stands for a recorded one, open. Raises `ReplayError`."""
        if sending.current is None or sending.current.is_closed:
            total = sum(len(turn.data) for each in self._connections for turn in each.turns)
            if total > MOST_BYTES:
                raise ReplayError(f"more than {MOST_BYTES >> 30} GiB were sent and received: replay only a part")
            try:
                sending.current = await self._open(sending.broker or self._settings.broker, self._settings.login)
            except (ConnectError, LoginError) as error:
                if sending.broker in (None, self._settings.broker):
                    raise ReplayError(str(error)) from None
                self._say(f"{error}; its requests go to {self._settings.broker}")
                sending.broker = None
                return await self._connection(sending)
        return sending.current

    def _recorded_login(self) -> Login | None:
        """Return who logs in with PLAIN in the recording, if that may be sent again: to look at the cluster first."""
        for each in self._recording.exchanges if self._settings.recorded_login else ():
            parts = (each.asked.get("auth_bytes") or b"").split(b"\0") if each.key == ApiKey.SASL_AUTHENTICATE else []
            if len(parts) == 3 and not each.has_error:
                return Login("PLAIN", parts[1].decode(errors="replace"), parts[2].decode(errors="replace"))
        return None

    async def _open(self, broker: BrokerAddress, login: Login | None) -> ReplayConnection:
        made = await ReplayConnection.open(broker, self._settings.tls, self._context, login)
        self._connections.append(made)
        return made


def _frame(each: RecordedExchange, asked: Values) -> bytes:
    """Write a request with other values. Raises `EncodeError`."""
    layout = request_layout(each.key, each.version)
    assert layout.header is not None
    header, _ = reader(layout.header, layout.header_version)(each.request, PREFIX, len(each.request))
    return frame_bytes(layout, header, asked)


def left_out_words(left_out: dict[str, Counter[str]]) -> list[str]:
    """Return lines that say what was not sent."""
    lines = []
    for why, counts in left_out.items():
        names = ", ".join(f"{name} {count:,}" for name, count in counts.most_common())
        lines.append(f"left out {counted(counts.total(), 'request')}: {why}: {names}")
    return lines

"""What stands for one recorded connection: a connection to each broker that its requests are for, and the conversation
that is kept of it.

Invariant: the conversation reads as if one broker had answered all, in the order of requests.
"""

import time
from collections import deque
from dataclasses import dataclass, field

from dissector.conversation.turns import Conversation, Turn
from dissector.core.addresses import BrokerAddress
from dissector.protocol.message_layout import REQUEST_ID, RESPONSE_ID
from dissector.recorded_server.exchanges import RecordedExchange
from dissector.replaying.broker_sessions import BrokerSessions
from dissector.replaying.connection import ReplayConnection


@dataclass(slots=True)
class KeptRequest:
    """A request whose response is to come."""

    correlation_id: bytes
    response: bytes | None = None
    is_over: bool = False


@dataclass(slots=True)
class KeptConversation:
    """What was sent and received, with frames as one broker would have had them."""

    first: ReplayConnection
    """The connection whose ends it has."""
    turns: list[Turn] = field(default_factory=list)
    _waiting: deque[KeptRequest] = field(default_factory=deque)

    def sent(self, frame: bytes, *, waits: bool) -> KeptRequest:
        """Keep a request; return where its response goes."""
        self.turns.append(Turn(time.time_ns(), True, frame))
        kept = KeptRequest(frame[REQUEST_ID])
        if waits:
            self._waiting.append(kept)
        return kept

    def received(self, kept: KeptRequest, frame: bytes | None) -> None:
        """Keep a response, behind those to earlier requests; None if there will be none."""
        kept.response, kept.is_over = frame, True
        while self._waiting and self._waiting[0].is_over:
            first = self._waiting.popleft()
            if (frame := first.response) is not None:
                response = frame[: RESPONSE_ID.start] + first.correlation_id + frame[RESPONSE_ID.stop :]
                self.turns.append(Turn(time.time_ns(), False, response))

    @property
    def conversation(self) -> Conversation:
        """All of it."""
        return Conversation(self.first.client, self.first.server, self.turns)

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(len(turn.data) for turn in self.turns)


@dataclass(slots=True)
class ReplayedConnection:
    """A recorded connection, and those that stand for it."""

    exchanges: list[RecordedExchange]
    home: BrokerAddress | None = None
    """The broker of requests that any may answer; None for the one that the user named."""
    open: dict[BrokerAddress, ReplayConnection] = field(default_factory=dict)
    sessions: BrokerSessions = field(default_factory=BrokerSessions)
    kept: KeptConversation | None = None

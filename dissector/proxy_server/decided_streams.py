"""Both directions of a connection whose frames a hook decides about.

Each frame has a sink here, and is recorded as it goes on: at the time at which it does, with what was decided. While a
direction waits, what comes is stashed, what is decided already is queued, and the side that sends is paused.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from dissector.capture.injection_notes import BEHIND_DROP, injection_notes
from dissector.protocol.message_layout import PREFIX
from dissector.protocol.schema.api_keys import ApiKey
from dissector.proxy_server.deciding import DecidedFrame
from dissector.proxy_server.exchanges import DecidedPending, MadeAnswer, RequestStream, ResponseStream
from dissector.proxy_server.frame_stream import Bytes, FrameStream, NeedMoreError, Send, Sink
from dissector.proxy_server.hooks import Action, Answer, Decider, Drop, FrameHead, Replace, Waiter
from dissector.proxy_server.ordinary import Request
from dissector.proxy_server.rewriting import REWRITTEN, OwnAddresses, rewriter

NO_FRAME: Final = -1
"""The API of a frame that is neither a request nor a response."""
_CLIENT_ID: Final = PREFIX + 10
"""Where a client id begins in a frame, behind its length."""


class Ends(NamedTuple):
    """What a decided direction needs of its connection."""

    record: Callable[[bytes, str], object]
    """Records bytes with a comment."""
    note: Callable[[str], object]
    close: Callable[[bool], object]
    """Closes both sides; with a reset if True."""
    pause: Callable[[], object]
    """Pauses the side that sends."""
    resume: Callable[[], object]


class _Peer(Protocol):
    """The direction of responses, as that of requests knows it."""

    def flush_answers(self) -> None:
        """Send the answers whose turn it is."""


class _Decided(FrameStream):
    """What both directions share: a `Way` for `DecidedFrame`."""

    _ends: Ends
    _queue: list[Callable[[], object]]
    _closing: bool | None
    """Whether to close with a reset, once what was let on is sent; None to go on."""

    def _prepare(self, send: Send, ends: Ends) -> None:
        self._ends, self._queue, self._closing = ends, [], None
        self._waiter: Waiter | None = None
        self._silence: str | None = None
        """The comment on a frame that was dropped. Brokers answer in order, so none behind it goes on."""
        self._send = lambda data: self._do(lambda: send(data))

    def record(self, data: bytes, comment: str) -> None:
        self._do(lambda: self._ends.record(data, comment))

    def note(self, comment: str) -> None:
        self._do(lambda: self._ends.note(comment))

    def wait(self, seconds: float) -> None:
        if seconds > 0 and not self.waits:
            self.waits = True
            self._ends.pause()
            asyncio.get_running_loop().call_later(seconds, self._go_on)

    def hold(self, waiter: Waiter, carry_out: Callable[[Action], Sequence[Bytes]]) -> None:
        def release(action: Action) -> None:
            if self._waiter is waiter:
                self._waiter = None
                self._queue.insert(0, lambda: self._send_all(carry_out(action)))
                self._go_on()

        self._waiter = waiter
        self.waits = True
        self._ends.pause()
        waiter.begin(release)

    def _send_all(self, parts: Sequence[Bytes]) -> None:
        for part in parts:
            self._send(part)
        self._fed()

    def abandon(self) -> None:
        """The connection has ended: nothing goes on any more."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.abandon()

    def drop(self, comment: str) -> None:
        self._silence = comment

    def decider(self, head: FrameHead, usual: Decider) -> Decider:
        """Return who decides about a frame: nobody behind one that was dropped."""
        return usual if self._silence is None else _Always(Drop(_behind(self._silence, head)))

    def close(self, *, reset: bool) -> None:
        self._closing = reset

    def answer(self, action: Answer) -> None:
        raise ValueError("only a request can be answered")

    def _do(self, act: Callable[[], object]) -> None:
        if self.waits:
            self._queue.append(act)
        else:
            act()

    def _go_on(self) -> None:
        self.waits = False
        queue, self._queue = self._queue, []
        for number, act in enumerate(queue):
            act()
            if self.waits:  # one of them waits again
                self._queue = queue[number + 1 :] + self._queue
                break
        stash, self._stash = b"".join(self._stash), []
        self._ends.resume()
        if stash:
            self.feed(stash)
        if not self.waits:
            idle, self.on_idle = self.on_idle, []
            for act in idle:
                act()

    def _fed(self) -> None:
        if self._closing is not None:
            reset, self._closing = self._closing, None
            self._do(lambda: self._ends.close(reset))

    def end(self) -> None:
        if self._carry:
            self.record(self._carry, "")
        super().end()


class DecidedRequestStream(_Decided, RequestStream):
    """From a client to a broker."""

    def __init__(
        self,
        send: Send,
        pending: DecidedPending,
        complain: Callable[[str], object],
        decider: Decider,
        ends: Ends,
        peer: _Peer,
    ) -> None:
        super().__init__(send, pending, complain)
        self._pending: DecidedPending = pending
        self._decider = decider
        self._peer = peer
        self._expects = False
        """Whether the request that is decided about gets a response."""
        self._asked: Request | MadeAnswer | None = None
        """Then it waits as this."""
        self._prepare(send, ends)

    def rewriter(self, size: int) -> Sink | None:
        return None

    def answer(self, action: Answer) -> None:
        if self._expects:
            last = self._pending[-1]
            assert not isinstance(last, MadeAnswer)
            self._pending[-1] = MadeAnswer(last[0], action, last)
            self._peer.flush_answers()

    def drop(self, comment: str) -> None:
        if not self._expects:
            return
        super().drop(comment)
        if self._pending and self._pending[-1] is self._asked:
            self._pending.pop()

    def _begin(self, data: Bytes, at: int, size: int) -> Sink | None:
        head = self._head(data, at, size)
        last = self._pending[-1] if self._pending else None
        super()._begin(data, at, size)
        self._asked = self._pending[-1] if self._pending else None
        self._expects = self._asked is not None and self._asked is not last
        if self._in_tokens and head.api_key != ApiKey.SASL_HANDSHAKE:
            head = head._replace(api_key=NO_FRAME, client_id=None)
        head = head._replace(has_response=self._expects)
        return DecidedFrame(head, self.decider(head, self._decider), self)

    def _head(self, data: Bytes, at: int, size: int) -> FrameHead:
        """Return what the head says. Raises `NeedMoreError` while the client id is not there."""
        if size < self.HEAD:
            return FrameHead(True, NO_FRAME, 0, 0, None, PREFIX + size, False)
        key, version = (int.from_bytes(data[at + n : at + n + 2], "big", signed=True) for n in (4, 6))
        correlation_id = int.from_bytes(data[at + 8 : at + 12], "big", signed=True)
        return FrameHead(True, key, version, correlation_id, self._client_id(data, at, size), PREFIX + size, False)

    def _client_id(self, data: Bytes, at: int, size: int) -> str | None:
        start, end = at + _CLIENT_ID, at + PREFIX + size
        if end - start < 0:
            return None
        if len(data) < start:
            raise NeedMoreError
        length = int.from_bytes(data[start - 2 : start], "big", signed=True)
        if not 0 <= length <= end - start:
            return None
        if len(data) < start + length:
            raise NeedMoreError
        return str(data[start : start + length], "utf-8", "replace")


class DecidedResponseStream(_Decided, ResponseStream):
    """From a broker to a client."""

    def __init__(
        self, send: Send, pending: DecidedPending, advertised: OwnAddresses, decider: Decider, ends: Ends
    ) -> None:
        super().__init__(send, pending, advertised)
        self._pending: DecidedPending = pending
        self._decider = decider
        self._request: Request | None = None
        self._prepare(send, ends)

    def rewriter(self, size: int) -> Sink | None:
        request = self._request
        if request is None or request[1] not in REWRITTEN:
            return None
        return rewriter(request[1], request[2], size, self._advertised)

    def flush_answers(self) -> None:
        """Send the answers whose turn it is."""
        while not (self._left or self._carry or self.waits) and self._pending:
            first = self._pending[0]
            if not isinstance(first, MadeAnswer) or first.answer.forward:
                return
            self._pending.popleft()
            self._request = first.request
            self.wait(first.answer.delay)
            self.record(first.answer.frame, first.answer.comment)
            inner = self.rewriter(len(first.answer.frame))
            for part in (first.answer.frame,) if inner is None else inner.feed(first.answer.frame):
                self._send(part)

    def _begin(self, data: Bytes, at: int, size: int) -> Sink | None:
        found = (
            self._pending.take(int.from_bytes(data[at + 4 : at + 8], "big", signed=True)) if size >= self.HEAD else None
        )
        decider = self._decider
        if isinstance(found, MadeAnswer):
            answer, self._request = found.answer, found.request
            decider = _Always(Replace(answer.frame, answer.comment, answer.delay))
        else:
            self._request = found
        correlation_id, key, version = self._request or (0, NO_FRAME, 0)
        head = FrameHead(False, key, version, correlation_id, None, PREFIX + size, has_response=False)
        return DecidedFrame(head, self.decider(head, decider), self)

    def _go_on(self) -> None:
        super()._go_on()
        self.flush_answers()

    def _fed(self) -> None:
        super()._fed()
        self.flush_answers()


def _behind(comment: str, head: FrameHead) -> str:
    """Return the comment on a frame behind one that was dropped with a comment."""
    found = next(injection_notes(comment), None)
    return "" if found is None else found._replace(correlation_id=head.correlation_id, action=BEHIND_DROP).comment()


class _Always:
    """Decides the same, whatever the frame."""

    def __init__(self, action: Action) -> None:
        self._action = action

    def decide(self, head: FrameHead, frame: bytes | None) -> Action:
        return self._action

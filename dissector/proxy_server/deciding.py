"""Carries out what a decider decides about one frame."""

from collections.abc import Callable, Sequence
from typing import Protocol

from dissector.core import limits
from dissector.proxy_server.frame_stream import Bytes, Sink
from dissector.proxy_server.hooks import (
    Action,
    Answer,
    Close,
    Decider,
    Drop,
    FrameHead,
    Hold,
    NeedFrame,
    Pass,
    Replace,
    Waiter,
)


class Way(Protocol):
    """The direction of a connection that a frame takes."""

    def record(self, data: bytes, comment: str) -> None:
        """Record bytes of this direction; the comment is on their first packet."""

    def note(self, comment: str) -> None:
        """Record a comment where no bytes are recorded."""

    def wait(self, seconds: float) -> None:
        """Let nothing on for so long; what was decided already included."""

    def rewriter(self, size: int) -> Sink | None:
        """Return what replaces addresses in the frame that goes on, if it has `size` bytes."""

    def answer(self, action: Answer) -> None:
        """Give the client this response in its turn."""

    def drop(self, comment: str) -> None:
        """This frame goes no further. If it is a response, or a request that has one, the client waits for it, and for
        all that is behind it."""

    def hold(self, waiter: Waiter, carry_out: Callable[[Action], Sequence[Bytes]]) -> None:
        """Let nothing on until the waiter decides; then carry that out, and send what goes on."""

    def close(self, *, reset: bool) -> None:
        """Close both sides; what was sent before goes out, unless it is a reset."""


class DecidedFrame:
    """The sink of one frame."""

    def __init__(self, head: FrameHead, decider: Decider, way: Way) -> None:
        self._head, self._decider, self._way = head, decider, way
        self._left = head.size
        self._held: list[bytes] = []
        self._inner: Sink | None = None
        self._comment = ""
        self._is_recorded = False
        """Whether all of the frame is recorded: it was held."""
        self._take: Callable[[bytes], Sequence[Bytes]] = self._pass
        self._begin(decider.decide(head, None))

    def feed(self, piece: Bytes) -> Sequence[Bytes]:
        self._left -= len(piece)
        return self._take(bytes(piece))

    def _begin(self, action: Action) -> None:
        """Prepare for the frame's bytes."""
        match action:
            case Pass(delay, comment):
                self._go_on(comment, delay)
            case NeedFrame() if self._head.size <= limits.DEFAULT.frame_size:
                self._take = self._gather
            case NeedFrame():
                self._go_on("", 0)
            case Close(comment, forward=False, reset=reset):
                self._take = self._discard
                self._way.note(comment)
                self._way.close(reset=reset)
            case Close(comment):
                self._go_on(comment, 0)
                self._take = self._pass_and_close(action)
            case Drop(comment):
                self._comment, self._take = comment, self._discard
                self._way.drop(comment)
            case Hold(waiter):
                self._take = self._hold(waiter)
            case Replace():
                self._way.wait(action.delay)
                self._take = self._replace(action)
            case Answer(comment=comment, forward=True):
                self._way.answer(action)
                self._go_on(comment, 0)
            case Answer(comment=comment):
                self._comment, self._take = comment, self._discard_and_answer(action)

    def _go_on(self, comment: str, delay: float) -> None:
        self._comment, self._take = comment, self._pass
        self._inner = self._way.rewriter(self._head.size)
        if delay:
            self._way.wait(delay)

    def _pass(self, piece: bytes) -> Sequence[Bytes]:
        self._record(piece)
        return (piece,) if self._inner is None else self._inner.feed(piece)

    def _discard(self, piece: bytes) -> Sequence[Bytes]:
        """Let nothing on. What the client sent is recorded; a response that it never gets is only mentioned."""
        if self._head.from_client:
            self._record(piece)
        elif self._comment:
            self._way.note(self._comment)
            self._comment = ""
        return ()

    def _discard_and_answer(self, action: Answer) -> Callable[[bytes], Sequence[Bytes]]:
        """Let nothing on, and answer when the request is recorded: its response comes behind it."""

        def take(piece: bytes) -> Sequence[Bytes]:
            self._discard(piece)
            if not self._left:
                self._way.answer(action)
            return ()

        return take

    def _record(self, piece: bytes) -> None:
        if not self._is_recorded:
            self._way.record(piece, self._comment)
        elif self._comment:
            self._way.note(self._comment)
        self._comment = ""

    def _hold(self, waiter: Waiter) -> Callable[[bytes], Sequence[Bytes]]:
        """Take the whole frame, and let it wait."""

        def take(frame: bytes) -> Sequence[Bytes]:
            if self._head.from_client:
                self._record(frame)
                self._is_recorded = True

            def carry_out(action: Action) -> Sequence[Bytes]:
                self._begin(action)
                return self._take(frame)

            self._way.hold(waiter, carry_out)
            return ()

        return take

    def _gather(self, piece: bytes) -> Sequence[Bytes]:
        """Hold the frame until it is whole, and ask again."""
        self._held.append(piece)
        if self._left:
            return ()
        whole = b"".join(self._held)
        self._held = []
        action = self._decider.decide(self._head, whole)
        self._begin(Pass() if isinstance(action, NeedFrame) else action)
        return self._take(whole)

    def _pass_and_close(self, action: Close) -> Callable[[bytes], Sequence[Bytes]]:
        def take(piece: bytes) -> Sequence[Bytes]:
            out = self._pass(piece)
            if not self._left:
                self._way.close(reset=action.reset)
            return out

        return take

    def _replace(self, action: Replace) -> Callable[[bytes], Sequence[Bytes]]:
        self._comment = action.comment
        sent = False

        def take(piece: bytes) -> Sequence[Bytes]:
            nonlocal sent
            if self._head.from_client:
                self._record(piece)
            if sent:
                return ()
            sent = True
            if not self._head.from_client:
                self._record(action.frame)
            inner = self._way.rewriter(len(action.frame))
            return (action.frame,) if inner is None else inner.feed(action.frame)

        return take

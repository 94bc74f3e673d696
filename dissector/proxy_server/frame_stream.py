"""One direction of a connection: cuts what comes into frames, and sends it on.

A frame goes on as its bytes come, in the pieces in which they come; nothing is joined. Only frames with a sink take
another way: what is rewritten, and what a decider decides about. What is held of a frame's beginning until its head is
there goes on when the stream ends.

Invariants:
  * without a sink the bytes that go out are those that come in, in order, whatever they are and however they are cut;
  * at most a head is held, or what a sink holds: copies, as the bytes that come are their owner's again when they
    were taken.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from dissector.protocol.message_layout import PREFIX
from dissector.proxy_server.ordinary import OrdinaryFrames

SIZE: Final = struct.Struct(">i")
Bytes = bytes | memoryview
Send = Callable[[Bytes], object]


class Sink(Protocol):
    """Takes the bytes of one frame and returns what goes on now."""

    def feed(self, piece: Bytes) -> Sequence[Bytes]:
        """Take the next bytes of the frame. With the last ones, all that is left goes on."""


class NeedMoreError(Exception):
    """A frame's head is not there yet."""


class FrameStream:
    """The common part of both directions. A subclass says what a frame's head is."""

    HEAD: int
    """Bytes of a frame behind its size that must be there before it goes on, if it has so many."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._ordinary: OrdinaryFrames | None = None
        self._carry = b""
        """The beginning of a frame whose head is not there yet."""
        self._left = 0
        """Bytes that are left of the frame that has begun."""
        self._sink: Sink | None = None
        self._is_opaque = False
        """Whether frames were lost: all goes on as it comes."""
        self.waits = False
        """Whether nothing goes on for a while: what comes is stashed."""
        self.on_idle: list[Callable[[], object]] = []
        """What waits until nothing waits here any more."""
        self._stash: list[bytes] = []

    def feed(self, data: Bytes) -> None:
        """Take bytes as they came."""
        if self.waits:
            self._stash.append(bytes(data))
            return
        if self._carry:
            data, self._carry = self._carry + data, b""
        sent = 0
        end = len(data)
        at = 0
        while at < end and not self._is_opaque:
            if self.waits:
                self._stash.append(bytes(data[at:]))
                end = at
                break
            if self._left:
                step = min(end - at, self._left)
                self._left -= step
                if self._sink is not None:
                    self._feed_sink(self._sink, data[at : at + step])
                    sent = at + step
                at += step
                continue
            at = self._pass_over(data, at, end)
            if at == end:
                break
            try:
                size = self._next_size(data, at, end)
                sink = self._begin(data, at, size)
            except NeedMoreError:
                self._carry = bytes(data[at:])
                end = at
                break
            if sink is not None and at > sent:
                self._send(data[sent:at])
                sent = at
            self._sink, self._left = sink, PREFIX + size
        if sent < end:
            self._send(data if not sent and end == len(data) else data[sent:end])

    def _feed_sink(self, sink: Sink, piece: Bytes) -> None:
        for part in sink.feed(piece):
            self._send(part)
        if not self._left:
            self._sink = None
        self._fed()

    def end(self) -> None:
        """No more bytes come: what is held goes on."""
        if self._carry:
            self._send(self._carry)
            self._carry = b""

    def abandon(self) -> None:
        """The connection has ended: nothing goes on any more."""

    def _pass_over(self, data: Bytes, at: int, end: int) -> int:
        """Take frames that go on as they are, the quick way; return where they end."""
        return at if self._ordinary is None else self._ordinary.end(data, at, end)

    def _fed(self) -> None:
        """A sink has taken bytes, and what it let on was sent."""

    def _next_size(self, data: Bytes, at: int, end: int) -> int:
        """Return the size of the frame that begins here. Raises `NeedMoreError` while its head is not there."""
        if end - at < PREFIX:
            raise NeedMoreError
        size: int = SIZE.unpack_from(data, at)[0]
        if size < 0:
            self._lost(size)
            return 0
        if end - at - PREFIX < min(size, self.HEAD):
            raise NeedMoreError
        return size

    def _lost(self, size: int) -> None:
        """What stands where a size should be can't be one."""
        self._is_opaque = True

    def _begin(self, data: Bytes, at: int, size: int) -> Sink | None:
        """Look at the head of a frame; return what takes its bytes, or None if it goes on as it is. Raises
        `NeedMoreError`."""
        raise NotImplementedError

"""What may be done with a frame on its way: the interface of whatever decides that, rules for faults or a person.

A decider of a connection's direction is asked once for each frame, when its head is there. It may ask for the whole
frame by `NEED_FRAME`, and is asked again with it. What is done is recorded as a comment on the frame's first packet; of
a response that is changed, the recording has what the client gets, and of a request what the client sent.

Without a hook, nothing asks, and no frame is looked at beyond what pairing needs.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol


class FrameHead(NamedTuple):
    """What is known of a frame when its first bytes are there."""

    from_client: bool
    api_key: int
    """Of the request, also where this is its response; -1 for a frame that is neither (a raw SASL token)."""
    api_version: int
    correlation_id: int
    client_id: str | None
    size: int
    """Of the frame, its prefix included."""
    has_response: bool
    """Whether the request gets one: Produce with acks=0 does not."""


class Connection(NamedTuple):
    """A client's connection through the proxy."""

    number: int
    """From 1 in each run."""
    client: str
    """As ``127.0.0.1:51234``."""
    broker: str
    """The broker's address, as it was named."""
    node: int | None
    """The broker's id; None before it is known."""


class Pass(NamedTuple):
    """The frame goes on as it is, after so many seconds. What comes behind it on this side waits, too."""

    delay: float = 0
    comment: str = ""


class NeedFrame(NamedTuple):
    """The decider needs the whole frame. One that is larger than `limits.frame_size` passes."""


class Replace(NamedTuple):
    """Another frame goes on in its place, its size prefix and the correlation id included; brokers' addresses in a
    response are still replaced."""

    frame: bytes
    comment: str
    delay: float = 0


class Answer(NamedTuple):
    """Of a request that has a response: the client gets this frame, when the responses to earlier requests are sent."""

    frame: bytes
    """Its size prefix and the correlation id included."""
    comment: str
    forward: bool = False
    """Whether the broker gets the request nevertheless. Then this takes the place of its response, when that comes."""
    delay: float = 0
    """Seconds before it goes on; responses behind it wait, too."""


class Drop(NamedTuple):
    """The frame ends here: the request never comes to the broker, and is never answered; the response never comes to
    the client. As brokers answer in order, no frame behind it goes on either, unless the request has no response."""

    comment: str


class Close(NamedTuple):
    """Both sides of the connection are closed, before the frame goes on or after that."""

    comment: str
    forward: bool = False
    reset: bool = False


class Waiter(Protocol):
    """Who decides later about a frame that is held."""

    def begin(self, release: Callable[["Action"], object]) -> None:
        """The frame waits; call `release` once with what becomes of it, any time after this has returned."""

    def abandon(self) -> None:
        """Its connection has ended: nothing waits any more."""


class Hold(NamedTuple):
    """The frame waits until its waiter decides; what comes behind it on this side waits, too. Only of a whole frame. A
    request is recorded when it begins to wait, as the client has sent it; a response when it goes on."""

    waiter: Waiter


Action = Pass | NeedFrame | Replace | Answer | Drop | Close | Hold
PASS: Final = Pass()
NEED_FRAME: Final = NeedFrame()


class Decider(Protocol):
    """Decides about the frames of one direction of a connection."""

    def decide(self, head: FrameHead, frame: bytes | None) -> Action:
        """Return what becomes of a frame; `frame` is the whole one, with its size prefix, if `NEED_FRAME` was returned
        for it, and None before."""


class Hook(Protocol):
    """Gives a new connection its deciders: of requests, and of responses."""

    def deciders(self, connection: Connection) -> tuple[Decider, Decider]:
        """Return both."""

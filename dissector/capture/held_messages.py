"""The messages that a proxy holds until a person decides about them, as its process reports it."""

from typing import NamedTuple


class HeldMessage(NamedTuple):
    """One of them."""

    number: int
    """From 1 in each run."""
    from_client: bool
    """Whether it is a request."""
    api_key: int
    api_version: int
    """Of the request, also where this is its response."""
    correlation_id: int
    client: str
    """The client's end of the connection, `host:port`."""
    broker: str
    client_id: str | None
    """Of a request."""
    size: int
    """Bytes of the frame."""
    since_ns: int
    """When it came, nanoseconds since 1970."""
    until_ns: int
    """When it goes on by itself."""


class Interception(NamedTuple):
    """What is held, and what will be."""

    text: str | None = None
    """What is to be held, as it was typed; empty for everything, None for nothing."""
    limit: float = 0
    """Seconds after which a message goes on by itself."""
    missed: int = 0
    """Messages that matched and went on, because too much waited."""
    held: tuple[HeldMessage, ...] = ()
    """In the order in which they came."""

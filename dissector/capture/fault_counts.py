"""What became of a rule for faults of a proxy, as its process reports it."""

from typing import NamedTuple


class FaultCount(NamedTuple):
    """One rule."""

    name: str
    """Its number, if it has no name."""
    rule: str
    asked: int
    """Exchanges that it was asked about."""
    matched: int
    """Tested exchanges that matched its filter."""
    fired: int
    unable: int
    """Those that it could do nothing to: too large to be looked at, no place for an error, no batch to corrupt."""
    is_armed: bool = True
    """Whether it is asked at all."""


class FiredFault(NamedTuple):
    """One time that a rule fired."""

    rule: int
    """The rule's number, from 1."""
    time_ns: int
    client: str
    """The client's end of the connection, `host:port`."""
    correlation_id: int
    api_key: int

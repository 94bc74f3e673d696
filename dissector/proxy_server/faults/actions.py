"""What a rule does: `delay 200ms`, `error NOT_LEADER_OR_FOLLOWER acted`, `close after`, `drop`, `throttle 500ms`,
`offer Fetch<=11`, `corrupt`, `slow 64kB/s`.

A new action is a class here, its entry in `_READ`, and what it does in `acting.py`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from dissector.core.suggestions import nearest
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.loader import api_name, api_named, apis
from dissector.proxy_server.faults.errors import WordError
from dissector.proxy_server.faults.words import Word, duration_ns, rate, shown_duration, shown_rate

NEVER_OFFERED: Final = -1
"""The newest version of an API that is not offered at all."""
_OFFER: Final = re.compile(r"(?P<api>\w+)\s*<=\s*(?P<newest>-1|\d{1,5})", re.ASCII)


@dataclass(frozen=True, slots=True)
class DelayFault:
    """The response comes later; a request without one goes on later."""

    ns: int

    def __str__(self) -> str:
        return f"delay {shown_duration(self.ns)}"


@dataclass(frozen=True, slots=True)
class ErrorFault:
    """The client gets an error."""

    code: ErrorCode
    acted: bool = False
    """Whether the broker gets the request nevertheless, and its response is changed."""

    def __str__(self) -> str:
        return f"error {self.code.name}{' acted' * self.acted}"


@dataclass(frozen=True, slots=True)
class CloseFault:
    """The connection is closed."""

    after: bool = False
    """Whether the broker gets the request: the connection is closed in place of its response."""

    def __str__(self) -> str:
        return f"close{' after' * self.after}"


@dataclass(frozen=True, slots=True)
class DropFault:
    """The request is never answered."""

    after: bool = False
    """Whether the broker gets the request: its response is dropped."""

    def __str__(self) -> str:
        return f"drop{' after' * self.after}"


@dataclass(frozen=True, slots=True)
class ThrottleFault:
    """The response says that a quota throttles the client, and the connection's next request waits so long."""

    ns: int

    def __str__(self) -> str:
        return f"throttle {shown_duration(self.ns)}"


@dataclass(frozen=True, slots=True)
class OfferFault:
    """ApiVersions offers older versions."""

    newest: tuple[tuple[int, int], ...]
    """API keys, each with the newest version that is offered."""

    def __str__(self) -> str:
        return f"offer {' '.join(f'{api_name(key)}<={newest}' for key, newest in self.newest)}"


@dataclass(frozen=True, slots=True)
class CorruptFault:
    """The checksum of a record batch is wrong: of a Produce request, or of a response with records."""

    def __str__(self) -> str:
        return "corrupt"


@dataclass(frozen=True, slots=True)
class SlowFault:
    """Request and response wait as long as they would take at a rate."""

    rate: int
    """Bytes a second."""

    def __str__(self) -> str:
        return f"slow {shown_rate(self.rate)}"


@dataclass(frozen=True, slots=True)
class HoldMessage:
    """The request or the response waits until a person decides. Nobody writes it in a rule: `intercept` makes it."""

    of_response: bool

    def __str__(self) -> str:
        return f"hold {'response' if self.of_response else 'request'}"


FaultAction = (
    DelayFault | ErrorFault | CloseFault | DropFault | ThrottleFault | OfferFault | CorruptFault | SlowFault
    | HoldMessage
)  # fmt: skip
_Read = Callable[[Word, Sequence[Word]], FaultAction]


def read_action(found: Sequence[Word]) -> FaultAction:
    """Return the action that words say. Raises `WordError`."""
    name, *rest = found
    read = _READ.get(name.text)
    if read is None:
        raise WordError(name.column, f"unknown action {name.text!r:.40}", nearest(name.text, _READ) or tuple(_READ))
    return read(name, rest)


def _delay(name: Word, rest: Sequence[Word]) -> FaultAction:
    return DelayFault(duration_ns(_only(name, rest, "a duration: delay 200ms")))


def _throttle(name: Word, rest: Sequence[Word]) -> FaultAction:
    return ThrottleFault(duration_ns(_only(name, rest, "a duration: throttle 500ms")))


def _slow(name: Word, rest: Sequence[Word]) -> FaultAction:
    return SlowFault(rate(_only(name, rest, "a rate: slow 64kB/s")))


def _corrupt(name: Word, rest: Sequence[Word]) -> FaultAction:
    if rest:
        raise WordError(rest[0].column, "nothing may follow 'corrupt'")
    return CorruptFault()


def _error(name: Word, rest: Sequence[Word]) -> FaultAction:
    if not rest or len(rest) > 2:
        raise WordError(name.column, "'error' needs the name of an error: error NOT_LEADER_OR_FOLLOWER")
    code = ErrorCode.__members__.get(rest[0].text.upper())
    if not code:
        near = nearest(rest[0].text, [each for each in ErrorCode.__members__ if ErrorCode[each]])
        raise WordError(rest[0].column, f"unknown error {rest[0].text!r:.60}", near)
    return ErrorFault(code, _one_of(rest[1:], "unacted", "acted"))


def _close(name: Word, rest: Sequence[Word]) -> FaultAction:
    return CloseFault(_one_of(rest, "before", "after"))


def _drop(name: Word, rest: Sequence[Word]) -> FaultAction:
    return DropFault(_one_of(rest, "before", "after"))


def _offer(name: Word, rest: Sequence[Word]) -> FaultAction:
    text, column = " ".join(each.text for each in rest), rest[0].column if rest else name.column
    found: dict[int, int] = {}
    at = 0
    while each := _OFFER.match(text, at):
        known = api_named(each["api"])
        if known is None:
            near = nearest(each["api"], [one.name for one in apis()])
            raise WordError(column, f"unknown API {each['api']!r:.40}", near)
        found[known.key] = int(each["newest"])
        at = each.end() + (text[each.end() : each.end() + 1] == " ")
    if not found or at < len(text):
        raise WordError(column, "'offer' needs APIs with their newest version: offer Fetch<=11 Produce<=7")
    if found.get(ApiKey.API_VERSIONS, 0) < 0:
        raise WordError(column, "ApiVersions can't be omitted from its own response")
    return OfferFault(tuple(found.items()))


_READ: Final[dict[str, _Read]] = {
    "delay": _delay, "error": _error, "close": _close, "drop": _drop, "throttle": _throttle, "offer": _offer,
    "corrupt": _corrupt, "slow": _slow,
}  # fmt: skip
ACTIONS: Final = tuple(_READ)


def _only(name: Word, rest: Sequence[Word], what: str) -> Word:
    if len(rest) != 1:
        raise WordError(rest[1].column if rest else name.column, f"after {name.text!r} comes {what}")
    return rest[0]


def _one_of(rest: Sequence[Word], one: str, other: str) -> bool:
    """Return whether the word, if there is one, is the other of two."""
    if len(rest) > 1 or (rest and rest[0].text not in (one, other)):
        wrong = rest[-1]
        raise WordError(wrong.column, f"{wrong.text!r:.40} is neither {one!r} nor {other!r}")
    return bool(rest) and rest[0].text == other

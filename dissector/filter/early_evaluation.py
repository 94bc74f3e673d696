"""Evaluate a filter on an exchange of which only a part is there yet: the head of its request, its request, or both
messages. The answer is no, yes, or open: what is not there may decide.

Invariant, a property test: where a part says yes or no, the whole exchange says the same.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from dissector.exchange.message_subjects import TOPIC
from dissector.exchange.model import Exchange
from dissector.filter.column_evaluation import NO, OPEN, YES
from dissector.filter.conditions import (
    Condition,
    Joined,
    MessageCondition,
    Negated,
    RowFieldCondition,
    SubjectCondition,
)
from dissector.filter.record_fields import FETCHED, PRODUCED, RecordCondition

OF_HEAD: Final = frozenset((
    "kind", "connection", "client", "server", "address", "ip.addr", "ip.src", "ip.dst", "tcp.port", "tcp.srcport",
    "tcp.dstport", "api_key", "api", "api_version", "correlation_id", "client_id", "request", "request.size",
))  # fmt: skip
"""Row fields that are known with the head of a request."""
VARYING: Final = frozenset(("correlation_id", "request.size"))
"""Those of them that differ between requests of one client, API and version."""
OF_RESPONSE: Final = frozenset(("response", "response.size", "size"))
"""Row fields that are known with a response."""
REQUEST, RESPONSE = "request", "response"


class Known(IntEnum):
    """How much of an exchange is there."""

    HEAD = 0
    """The fields of `OF_HEAD`."""
    REQUEST = 1
    BOTH = 2


def evaluate_early(condition: Condition, exchange: Exchange, known: Known) -> int:
    """Return `NO`, `OPEN` or `YES`; `OPEN` never if both messages are known."""
    match condition:
        case Joined(parts=parts, every=every):
            results = (evaluate_early(each, exchange, known) for each in parts)
            return min(results) if every else max(results)
        case Negated():
            return YES - evaluate_early(condition.condition, exchange, known)
        case _ if known is Known.BOTH:
            return _sure(condition, exchange)
        case RowFieldCondition(field=field):
            return _sure(condition, exchange) if field.name in OF_HEAD else OPEN
    sides = _sides(condition, exchange.api_key)
    if known is Known.HEAD:
        return OPEN if sides else NO
    if REQUEST in sides and condition.holds(exchange, 0):
        return YES
    return OPEN if RESPONSE in sides else NO


def parts_of(condition: Condition) -> Iterator[Condition]:
    """Yield the conditions that a condition is made of; itself, if it is not made of others."""
    if isinstance(condition, Joined | Negated):
        for each in condition.parts:
            yield from parts_of(each)
    else:
        yield condition


def never_known(condition: Condition) -> str | None:
    """Return a field that only a capture knows (its rows' numbers, times and findings), or None."""
    fields = (each.field.name for each in parts_of(condition) if isinstance(each, RowFieldCondition))
    return next((name for name in fields if name not in OF_HEAD | OF_RESPONSE), None)


def asks_response(condition: Condition) -> bool:
    """Return whether a part of a condition is about responses only."""
    return any(_is_of_response(each) for each in parts_of(condition))


def varies(condition: Condition) -> bool:
    """Return whether the head may decide otherwise for requests of one client, API and version."""
    fields = (each.field.name for each in parts_of(condition) if isinstance(each, RowFieldCondition))
    return not VARYING.isdisjoint(fields)


def reads_topics(condition: Condition) -> bool:
    """Return whether it is about topics, whose ids may have to be known by name, or partitions."""
    return any(
        isinstance(each, RecordCondition)
        or (isinstance(each, SubjectCondition) and (each.subject is TOPIC or each.subject.more is not None))
        for each in parts_of(condition)
    )


def _sure(condition: Condition, exchange: Exchange) -> int:
    return YES if condition.holds(exchange, 0) else NO


def _sides(condition: Condition, api_key: int | None) -> frozenset[str]:
    """Return which messages of an API may decide a condition about messages."""
    match condition:
        case SubjectCondition(subject=subject):
            return frozenset(place.side for place in subject.places if place.api_key == api_key)
        case MessageCondition(api_keys=api_keys, tests=tests):
            return frozenset(side for side, keys in api_keys.items() if api_key in keys or (side, side) in tests)
        case RecordCondition():
            return frozenset([REQUEST] * (api_key in PRODUCED) + [RESPONSE] * (api_key in FETCHED))
    return frozenset((REQUEST, RESPONSE))


def _is_of_response(condition: Condition) -> bool:
    match condition:
        case RowFieldCondition(field=field):
            return field.name in OF_RESPONSE
        case SubjectCondition(subject=subject):
            return all(place.side == RESPONSE for place in subject.places)
        case MessageCondition(api_keys=api_keys):
            return set(api_keys) == {RESPONSE}
    return False

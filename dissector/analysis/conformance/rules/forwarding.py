"""Rules on requests that brokers pass on to a controller."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from dissector.analysis.conformance.events import Body, MessageEvent
from dissector.analysis.conformance.message_columns import MessageColumns
from dissector.analysis.conformance.rule import Proof, RuleBook, RuleMemory, RuleSide, Verdict
from dissector.core.text import counted

RULES: Final = RuleBook()
MOST_REQUESTS: Final = 4_096
"""Requests that may still be passed on."""
NOT_PASSED_ON: Final = frozenset({"Produce", "Fetch"})
"""Requests that a broker answers itself. They are the most."""
UNKNOWN_TAGS: Final = "unknown_tagged_fields"
_Key = tuple[str, int, int]
_Tags = frozenset[tuple[str, str]]


class _Sent(NamedTuple):
    """What is kept of a request, which may be large."""

    number: int
    tags: _Tags


@RULES.memory("unknown-tags-dropped", "KIP-482, KIP-590", side=RuleSide.BROKER)
class ForwardedTags(RuleMemory):
    """a request in an Envelope has all unknown tagged fields that its client sent."""

    def __init__(self) -> None:
        self._sent: dict[_Key, _Sent] = {}
        """By client id, API key and correlation id, which a broker passes on, too."""

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """What brokers may pass on, if they pass on anything: with few requests, what has the ids of those."""
        envelopes = columns.of({"Envelope"})
        if not envelopes.any():
            return Proof.nothing(columns)
        sent = columns.has_request & ~columns.of(NOT_PASSED_ON)
        if sent.sum() < MOST_REQUESTS:  # none is forgotten
            events = (MessageEvent.of(each, is_request=True) for each in columns.decoded(np.flatnonzero(envelopes)))
            ids = {_key(_passed_on(event).get("header", {})) for event in events}
            may_be_sent = np.isin(columns.found.correlation_id, [number for *_, number in ids])
            sent &= may_be_sent | envelopes | ~columns.is_plain
        return Proof(columns.messages_of(sent) & columns.is_request)

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.api in NOT_PASSED_ON:
            return
        if event.api != "Envelope":
            while len(self._sent) >= MOST_REQUESTS:
                del self._sent[next(iter(self._sent))]
            self._sent[_key(event.message.header)] = _Sent(event.number, _tags(event.body))
            return
        passed_on = _passed_on(event)
        sent = self._sent.pop(_key(passed_on.get("header", {})), None)
        if sent is not None:
            lost = len(sent.tags - _tags(passed_on.get("body", {})))
            yield Verdict(
                event, not lost, "request_data", f"{counted(lost, 'tagged field')} of exchange {sent.number:,} lost"
            )


def _passed_on(event: MessageEvent) -> Body:
    """The request in an Envelope."""
    found: Body = event.body.get("request_data_decoded") or {}
    return found


def _key(header: Any) -> _Key:
    return str(header.get("client_id")), header.get("request_api_key", -1), header.get("correlation_id", -1)


def _tags(body: object) -> _Tags:
    """Return the unknown tagged fields of a body: where, and which."""
    return frozenset(_tags_in(body, ""))


def _tags_in(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, each in value.items():
            if name == UNKNOWN_TAGS:
                yield from ((path, str(tag)) for tag in each)
            elif isinstance(each, dict | list):
                yield from _tags_in(each, f"{path}.{name}")
    elif isinstance(value, list):
        for n, each in enumerate(value):
            yield from _tags_in(each, f"{path}[{n}]")

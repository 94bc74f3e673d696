"""Rules on requests that brokers pass on to a controller."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from dissector.analysis.conformance.events import Body, MessageEvent
from dissector.analysis.conformance.message_columns import MessageColumns
from dissector.analysis.conformance.rule import Proof, RuleBook, RuleMemory, RuleSide, Verdict
from dissector.core.text import counted
from dissector.findings.framework.read_fields import REQUEST

RULES: Final = RuleBook()
PATIENCE: Final = 1 << 16
"""A request is passed on before so many exchanges begin after it."""
NOT_PASSED_ON: Final = frozenset({"Produce", "Fetch"})
"""Requests that a broker answers itself. They are the most."""
UNKNOWN_TAGS: Final = "unknown_tagged_fields"
_API_KEY_BITS: Final = 16
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
        """What brokers passed on, if they passed on anything: the last request with the ids of each, before it."""
        envelopes = columns.of({"Envelope"})
        if not envelopes.any():
            return Proof.nothing(columns)
        which = np.flatnonzero(envelopes)
        different, of = columns.different(which, REQUEST)
        passed_on = (_passed_on(MessageEvent.of(each, is_request=True)) for each in columns.decoded(different))
        known = [_key(each.get("header", {})) for each in passed_on]
        keys = [known[n] for n in of.tolist()]
        ids = [key[2] << _API_KEY_BITS | key[1] for key in keys if key is not None]
        sent = columns.has_request & ~columns.of(NOT_PASSED_ON) & ~envelopes
        sent &= np.isin(columns.found.correlation_id << _API_KEY_BITS | columns.found.api_key, ids)
        earlier: dict[_Key, list[int]] = {key: [] for key in keys if key is not None}
        is_open = envelopes.copy()
        for at in np.flatnonzero(sent).tolist():
            sender = columns.request_ids(at)
            if sender in earlier:
                earlier[sender].append(at)
            elif not columns.is_request_readable[at]:
                is_open[at] = True  # its header says who sent it
        for at, key in zip(which.tolist(), keys, strict=True):
            if key is not None:
                before = bisect_left(earlier[key], at)
                is_open[earlier[key][max(0, before - 1) : before]] = True
        return Proof(columns.messages_of(is_open) & columns.is_request)

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.api in NOT_PASSED_ON:
            return
        while self._sent and next(iter(self._sent.values())).number <= event.number - PATIENCE:
            del self._sent[next(iter(self._sent))]
        if event.api != "Envelope":
            key = _key(event.message.header)
            if key is not None:
                self._sent.pop(key, None)  # so that the oldest is the first one
                self._sent[key] = _Sent(event.number, _tags(event.body))
            return
        passed_on = _passed_on(event)
        key = _key(passed_on.get("header", {}))
        sent = None if key is None else self._sent.pop(key, None)
        if sent is not None:
            lost = len(sent.tags - _tags(passed_on.get("body", {})))
            yield Verdict(
                event, not lost, "request_data", f"{counted(lost, 'tagged field')} of exchange {sent.number:,} lost"
            )


def _passed_on(event: MessageEvent) -> Body:
    """The request in an Envelope."""
    found: Body = event.body.get("request_data_decoded") or {}
    return found


def _key(header: Any) -> _Key | None:
    """Who sent a request; None if its header can't be read."""
    if "client_id" not in header:
        return None
    return str(header["client_id"]), header["request_api_key"], header["correlation_id"]


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

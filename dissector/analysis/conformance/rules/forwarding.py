"""Rules on requests that brokers pass on to a controller."""

from collections.abc import Iterator
from typing import Any, Final

from dissector.analysis.conformance.events import MessageEvent
from dissector.analysis.conformance.rule import ProtocolRule, RuleSide, Verdict, verdict
from dissector.core.text import counted

MOST_REQUESTS: Final = 4_096
"""Requests that may still be passed on."""
UNKNOWN_TAGS: Final = "unknown_tagged_fields"
_Key = tuple[str, int, int]


class ForwardedTags(ProtocolRule):
    """A request that a broker passes on keeps the tagged fields that the broker does not know."""

    code = "unknown-tags-dropped"
    title = "a request in an Envelope has all unknown tagged fields that its client sent"
    source = "KIP-482, KIP-590"
    side = RuleSide.BROKER

    def __init__(self) -> None:
        self._sent: dict[_Key, MessageEvent] = {}
        """By client id, API key and correlation id, which a broker passes on, too."""

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.api != "Envelope":
            while len(self._sent) >= MOST_REQUESTS:
                del self._sent[next(iter(self._sent))]
            self._sent[_key(event.message.header)] = event
            return
        passed_on = event.body.get("request_data_decoded") or {}
        sent = self._sent.pop(_key(passed_on.get("header", {})), None)
        if sent is not None:
            lost = len(_tags(sent.body) - _tags(passed_on.get("body", {})))
            yield verdict(
                event, not lost, "request_data", f"{counted(lost, 'tagged field')} of exchange {sent.number:,} lost"
            )


def _key(header: Any) -> _Key:
    return str(header.get("client_id")), header.get("request_api_key", -1), header.get("correlation_id", -1)


def _tags(value: object, path: str = "") -> set[tuple[str, str]]:
    """Return the unknown tagged fields of a body: where, and which."""
    found: set[tuple[str, str]] = set()
    if isinstance(value, dict):
        for name, each in value.items():
            if name == UNKNOWN_TAGS:
                found |= {(path, str(tag)) for tag in each}
            else:
                found |= _tags(each, f"{path}.{name}")
    elif isinstance(value, list):
        for n, each in enumerate(value):
            found |= _tags(each, f"{path}[{n}]")
    return found


RULES: Final = (ForwardedTags,)

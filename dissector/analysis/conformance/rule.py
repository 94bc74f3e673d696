"""What a rule is, and what it says of a message."""

from abc import ABC
from collections.abc import Iterator
from enum import StrEnum
from typing import ClassVar, Final, NamedTuple

from dissector.analysis.conformance.events import Body, MessageEvent

REST: Final = "(rest)"
"""In place of a path: the bytes behind the last field."""


class RuleSide(StrEnum):
    """Whose duty a rule is."""

    CLIENT = "client"
    BROKER = "broker"


class Verdict(NamedTuple):
    """Whether one message keeps a rule. The message and its connection show who is to be praised or blamed."""

    is_kept: bool
    event: MessageEvent
    path: str
    """The field that shows it, in the body, as in JSON: ``topics[0].name``; empty for the whole message; or `REST`."""
    words: str
    """What breaks it."""


class ProtocolRule(ABC):
    """A rule of the protocol, with what it has to remember of one capture. A rule says nothing of messages that it does
    not apply to: a heartbeat of a member that was never fenced neither keeps nor breaks the rule on fenced members.

    What it remembers is bounded by the connections, groups, producers and partitions of a capture."""

    code: ClassVar[str]
    title: ClassVar[str]
    """What is required, as a sentence without a full stop."""
    source: ClassVar[str]
    """The KIP, the schema file, or the class of Kafka's that requires it."""
    side: ClassVar[RuleSide] = RuleSide.CLIENT
    apis: ClassVar[frozenset[str]] = frozenset()
    """The APIs whose messages it sees, if they can be read; none for all messages of all APIs, even unreadable ones."""

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        """Look at a request, in the order of time."""
        return iter(())

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        """Look at a response, in the order of time. `event.request` has the body of its request."""
        return iter(())

    def end(self) -> Iterator[Verdict]:
        """Say what only the end of the capture shows: that something never came."""
        return iter(())


def partitions(body: Body, topics: str, name: str = "partitions") -> Iterator[tuple[Body, Body, str]]:
    """Yield topic, partition and path of each partition that a body lists."""
    for n, topic in enumerate(body.get(topics, ())):
        for m, partition in enumerate(topic[name]):
            yield topic, partition, f"{topics}[{n}].{name}[{m}]"


def verdict(event: MessageEvent, is_kept: bool, path: str, words: str) -> Verdict:
    """Return what a rule says of a message; `words` are for a broken one."""
    return Verdict(is_kept, event, path, words)

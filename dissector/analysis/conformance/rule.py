"""What a rule is, and what it says of a message."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple, TypeVar

from dissector.analysis.conformance.events import Body, MessageEvent
from dissector.core.finding import Finding

REST: Final = "(rest)"
"""In place of a path: the bytes behind the last field."""


class RuleSide(StrEnum):
    """Whose duty a rule is."""

    CLIENT = "client"
    BROKER = "broker"


class Verdict(NamedTuple):
    """Whether one message keeps a rule. The message and its connection show who is to be praised or blamed."""

    event: MessageEvent
    is_kept: bool
    path: str
    """The field that shows it, in the body, as in JSON: ``topics[0].name``; empty for the whole message; or `REST`."""
    words: str
    """What breaks it; not shown where it is kept."""


Verdicts = Iterable[Verdict] | None
"""What a look at a message gives; None for nothing."""
Look = Callable[[MessageEvent], Verdicts]


class RuleMemory:
    """What a rule remembers of one capture, and how it looks at messages. A rule says nothing of messages that it does
    not apply to: a heartbeat of a member that was never fenced neither keeps nor breaks the rule on fenced members.

    What it remembers is bounded by the connections, groups, producers and partitions of a capture."""

    def request(self, event: MessageEvent) -> Verdicts:
        """Look at a request, in the order of time."""

    def response(self, event: MessageEvent) -> Verdicts:
        """Look at a response, in the order of time. `event.request` has the body of its request."""

    def orphan(self, event: MessageEvent) -> Verdicts:
        """Look at a response without a request in the capture, in the order of time."""

    def closed(self, event: MessageEvent, causes: Sequence[Finding]) -> Verdicts:
        """Look at a request on which the connection was closed, of a client that did not ask for versions on it, at the
        end of the capture; `causes` are the findings of the examination about it."""

    def end(self) -> Verdicts:
        """Say what only the end of the capture shows: that something never came."""


@dataclass(frozen=True, slots=True)
class ProtocolRule:
    """A rule of the protocol."""

    code: str
    title: str
    """What is required, as a sentence without a full stop."""
    source: str
    """The KIP, the schema file, or the class of Kafka's that requires it."""
    side: RuleSide
    apis: frozenset[str]
    """The APIs whose messages it sees, if they can be read; none for all messages of all APIs, even unreadable ones."""
    begin: Callable[[], RuleMemory]
    """Begins a capture."""


Memory = TypeVar("Memory", bound=type[RuleMemory])


class RuleBook(list[ProtocolRule]):
    """The rules of a part of the protocol, in their order. Its decorators add one: a class, or a function for a rule
    that looks at one message alone. The docstring, less its full stop, is the rule's title."""

    def memory(
        self, code: str, source: str, apis: Iterable[str] = (), side: RuleSide = RuleSide.CLIENT
    ) -> Callable[[Memory], Memory]:
        """A rule that remembers earlier messages."""

        def add(rule: Memory) -> Memory:
            title = " ".join((rule.__doc__ or "").split()).removesuffix(".")
            self.append(ProtocolRule(code, title, source, side, frozenset(apis), rule))
            return rule

        return add

    def request(
        self, code: str, source: str, apis: Iterable[str] = (), side: RuleSide = RuleSide.CLIENT
    ) -> Callable[[Look], Look]:
        """A rule on single requests."""
        return partial(_add_look, "request", self.memory(code, source, apis, side))

    def response(
        self, code: str, source: str, apis: Iterable[str] = (), side: RuleSide = RuleSide.CLIENT
    ) -> Callable[[Look], Look]:
        """A rule on single responses."""
        return partial(_add_look, "response", self.memory(code, source, apis, side))


def _add_look(name: str, add: Callable[[type[RuleMemory]], object], look: Look) -> Look:
    add(type(look.__name__, (RuleMemory,), {name: staticmethod(look), "__doc__": look.__doc__}))
    return look


def partitions(body: Body, topics: str, name: str = "partitions") -> Iterator[tuple[Body, Body, str]]:
    """Yield topic, partition and path of each partition that a body lists."""
    for n, topic in enumerate(body.get(topics, ())):
        for m, partition in enumerate(topic[name]):
            yield topic, partition, f"{topics}[{n}].{name}[{m}]"

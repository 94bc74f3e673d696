"""What a rule is, what it says of a message, and which messages it has to look at.

Columns say most of it: of messages that are equal in what a rule reads it looks at one; one that remembers earlier
messages says by columns which of them it must see (`RuleMemory.proof`), and how often the others keep it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple, TypeVar

import numpy as np

from dissector.analysis.conformance.declared_fields import Reads
from dissector.analysis.conformance.events import Body, MessageEvent
from dissector.analysis.conformance.message_columns import MessageColumns
from dissector.core.arrays import Bool, Int64
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


class Proof(NamedTuple):
    """What columns show of the messages of a capture, `(m,)` each, by their places."""

    open: Bool
    """Which the rule must look at, in order. It says nothing new of the others, and needs none of them to judge these.
    """
    kept: Int64 | None = None
    """How many verdicts the others are worth: all of them that the rule is kept; None for none."""

    @classmethod
    def nothing(cls, columns: MessageColumns) -> "Proof":
        """Nothing is to be looked at."""
        return cls(np.zeros(len(columns.exchange), np.bool_))


class RuleMemory:
    """What a rule remembers of one capture, and how it looks at messages. A rule says nothing of messages that it does
    not apply to: a heartbeat of a member that was never fenced neither keeps nor breaks the rule on fenced members.

    What it remembers is bounded by the connections, groups, producers and partitions of a capture."""

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """Say by columns which messages of its APIs are to be looked at: without more knowledge all of them."""
        return Proof(columns.messages_of(columns.of(apis)))

    def request(self, event: MessageEvent) -> Verdicts:
        """Look at a request, in the order of time."""

    def response(self, event: MessageEvent) -> Verdicts:
        """Look at a response, in the order of time. `event.request` has the body of its request."""

    def orphan(self, event: MessageEvent) -> Verdicts:
        """Look at a response without a request in the capture, in the order of time."""

    def closed(self, event: MessageEvent, causes: Sequence[Finding]) -> Verdicts:
        """Look at a request on which the connection was closed, of a client that did not ask for versions on it, at the
        end of the capture; `causes` are the findings of the examination about its version."""

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
    begin: type[RuleMemory]
    """Begins a capture."""
    reads: Reads | None = field(compare=False)
    """Of a rule that looks at one message alone, the fields that decide: two messages of one API and version that are
    equal in those without a test, and pass no test, get the same verdicts. None for one that remembers."""


Memory = TypeVar("Memory", bound=type[RuleMemory])


class RuleBook(list[ProtocolRule]):
    """The rules of a part of the protocol, in their order. Its decorators add one: a class, or a function for a rule
    that looks at one message alone. The docstring, less its full stop, is the rule's title."""

    def memory(
        self, code: str, source: str, apis: Iterable[str] = (), side: RuleSide = RuleSide.CLIENT,
        reads: Reads | None = None,
    ) -> Callable[[Memory], Memory]:  # fmt: skip
        """A rule that remembers earlier messages."""

        def add(rule: Memory) -> Memory:
            title = " ".join((rule.__doc__ or "").split()).removesuffix(".")
            self.append(ProtocolRule(code, title, source, side, frozenset(apis), rule, reads))
            return rule

        return add

    def request(
        self, code: str, source: str, apis: Iterable[str] = (), side: RuleSide = RuleSide.CLIENT, *, reads: Reads
    ) -> Callable[[Look], Look]:
        """A rule on single requests."""
        return partial(_add_look, "request", self.memory(code, source, apis, side, reads))

    def response(
        self, code: str, source: str, apis: Iterable[str] = (), side: RuleSide = RuleSide.CLIENT, *, reads: Reads
    ) -> Callable[[Look], Look]:
        """A rule on single responses, each in the light of its request."""
        return partial(_add_look, "response", self.memory(code, source, apis, side, reads))


def _add_look(name: str, add: Callable[[type[RuleMemory]], object], look: Look) -> Look:
    add(type(look.__name__, (RuleMemory,), {name: staticmethod(look), "__doc__": look.__doc__}))
    return look


def partitions(body: Body, topics: str, name: str = "partitions") -> Iterator[tuple[Body, Body, str]]:
    """Yield topic, partition and path of each partition that a body lists."""
    for n, topic in enumerate(body.get(topics, ())):
        for m, partition in enumerate(topic[name]):
            yield topic, partition, f"{topics}[{n}].{name}[{m}]"

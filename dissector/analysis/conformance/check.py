"""Hold captures to all rules, and count for each client what it kept and what it broke."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dissector.analysis.conformance.events import MessageEvent, events
from dissector.analysis.conformance.rule import REST, Look, ProtocolRule, RuleMemory, Verdict, Verdicts
from dissector.analysis.conformance.rules import RULES
from dissector.capture_session import Capture
from dissector.core.finding import Finding

MOST_BREACHES: Final = 1_000
"""Breaches of a rule that are kept; all are counted."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A message that breaks a rule."""

    rule: ProtocolRule
    file: str
    client: str
    """The client of its connection: software and version, else the client id."""
    exchange: int
    """Its number, from 1."""
    time_ns: int
    part: str
    """``request`` or ``response``."""
    path: str
    """The field, in the body; empty for the whole message."""
    start: int
    """Where its bytes begin in the frame, and how many they are."""
    size: int
    words: str


@dataclass
class CheckResult:
    """What became of each rule. `kept` and `broken` count messages by the rule's code and the client; `breaches` are
    those that break one, at most `MOST_BREACHES` of each rule and client."""

    rules: Sequence[ProtocolRule] = RULES
    kept: Counter[tuple[str, str]] = field(default_factory=Counter)
    broken: Counter[tuple[str, str]] = field(default_factory=Counter)
    breaches: list[Breach] = field(default_factory=list)
    exchanges: int = 0

    @property
    def clients(self) -> list[str]:
        """The clients that some rule applied to."""
        return sorted({client for _, client in (*self.kept, *self.broken)})

    def counts(self, rule: ProtocolRule) -> tuple[int, int]:
        """Return how many messages kept a rule, and how many broke it."""
        kept, broken = (
            sum(n for (code, _), n in each.items() if code == rule.code) for each in (self.kept, self.broken)
        )
        return kept, broken


def _unwatched(_number: int) -> None:
    """Nobody waits."""


def check(
    captures: Iterable[tuple[str, Capture]],
    rules: Sequence[ProtocolRule] = RULES,
    watch: Callable[[int], None] = _unwatched,
) -> CheckResult:
    """Hold captures, each with its name, to rules; a rule forgets with each. They have been read to their end. Rules
    see secrets, as a masked body may be a broken one; what they say has no values that may be secrets.
    `watch` is called with the number of each exchange, and may end it by an exception."""
    result = CheckResult(rules)
    for name, capture in captures:
        _check(result, name, capture, watch)
    return result


def _check(result: CheckResult, name: str, capture: Capture, watch: Callable[[int], None]) -> None:
    begun = [(rule, rule.begin()) for rule in result.rules]
    by_api: dict[tuple[str, str, bool], list[tuple[ProtocolRule, Look]]] = {}
    closed: list[MessageEvent] = []
    asked: set[int] = set()
    add = _Adder(result, name, capture).add
    for event in events(capture.unmasked()):
        if event.is_request:
            watch(event.number)
            result.exchanges += 1
            if event.api == "ApiVersions":
                asked.add(event.connection)
            elif event.connection not in asked and event.is_closed and len(closed) < MOST_BREACHES:
                closed.append(event)
        kind = event.api, _side(event), event.is_read
        looks = by_api.get(kind)
        if looks is None:
            looks = by_api[kind] = _looks(begun, *kind)
        for rule, look in looks:
            verdicts = look(event)
            if verdicts:
                add(rule, verdicts)
    looking = [(rule, memory) for rule, memory in begun if type(memory).closed is not RuleMemory.closed]
    for event, causes in _causes(capture, closed) if looking else ():
        for rule, memory in looking:
            add(rule, memory.closed(event, causes))
    for rule, memory in begun:
        add(rule, memory.end())


class _Adder:
    """Adds what rules say of one capture to the result."""

    def __init__(self, result: CheckResult, name: str, capture: Capture) -> None:
        self._result = result
        self._name = name
        self._capture = capture
        self._clients: dict[int, str] = {}

    def add(self, rule: ProtocolRule, verdicts: Verdicts) -> None:
        clients, kept, code = self._clients, self._result.kept, rule.code
        for found in verdicts or ():
            event = found.event
            client = clients.get(event.connection)
            if client is None:
                client = clients[event.connection] = _client(self._capture, event)
            if found.is_kept:
                kept[code, client] += 1
            else:
                _add_breach(self._result, rule, found, self._name, client)


def _side(event: MessageEvent) -> str:
    """Return the name of the look that rules have at a message."""
    return "request" if event.is_request else "orphan" if event.is_orphan else "response"


def _causes(capture: Capture, closed: Sequence[MessageEvent]) -> Iterator[tuple[MessageEvent, list[Finding]]]:
    """Yield requests on which their connections were closed, with what the examination finds about them. It is limited
    to them, unless it was begun."""
    if not closed:
        return
    if capture.findings.examination is None:
        capture.findings.limit_to(np.array([each.number - 1 for each in closed], np.int64))
    for _ in capture.findings.examine():
        pass
    found: dict[int, list[Finding]] = {}
    for row, finding in capture.findings.cross_message():
        found.setdefault(row + 1, []).append(finding)
    yield from ((each, found.get(each.number, [])) for each in closed)


def _looks(
    begun: Iterable[tuple[ProtocolRule, RuleMemory]], api: str, name: str, is_read: bool
) -> list[tuple[ProtocolRule, Look]]:
    """Return the rules that look at messages of one side of an API, and how each does."""
    seeing = ((rule, memory) for rule, memory in begun if not rule.apis or (is_read and api in rule.apis))
    return [
        (rule, getattr(memory, name)) for rule, memory in seeing
        if getattr(type(memory), name) is not getattr(RuleMemory, name)
    ]  # fmt: skip


def _add_breach(result: CheckResult, rule: ProtocolRule, found: Verdict, file: str, client: str) -> None:
    result.broken[rule.code, client] += 1
    if result.broken[rule.code, client] > MOST_BREACHES:
        return
    event = found.event
    start, size = _place(event, found.path)
    part = "request" if event.is_request else "response"
    result.breaches.append(
        Breach(rule, file, client, event.number, event.time_ns, part, found.path, start, size, found.words)
    )


def _place(event: MessageEvent, path: str) -> tuple[int, int]:
    """Return where the bytes of a field are in its frame; those of the whole frame for no field."""
    if path == REST:
        size = len(event.message.rest)
        return event.message.size - size, size
    if path:
        wanted = f"body.{path}"
        for node in event.message.tree.walk():
            if node.path == wanted and node.source == 0:
                return node.start, node.size
    return 0, event.message.size


def _client(capture: Capture, event: MessageEvent) -> str:
    name, version = capture.connections.software(event.connection)
    if name:
        return f"{name} {version}".strip()
    client_id = event.exchange.fields.client_id
    return f"client id {client_id}" if client_id else event.exchange.fields.client

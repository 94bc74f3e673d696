"""Hold captures to all rules, and count for each client what it kept and what it broke."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from dissector.analysis.conformance.events import MessageEvent, events
from dissector.analysis.conformance.rule import REST, ProtocolRule, Verdict
from dissector.analysis.conformance.rules import RULES
from dissector.capture_session import Capture

Look = Callable[[MessageEvent], Iterable[Verdict]]
MOST_BREACHES: Final = 1_000
"""Breaches of a rule that are kept; all are counted."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A message that breaks a rule."""

    rule: type[ProtocolRule]
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

    rules: Sequence[type[ProtocolRule]] = RULES
    kept: Counter[tuple[str, str]] = field(default_factory=Counter)
    broken: Counter[tuple[str, str]] = field(default_factory=Counter)
    breaches: list[Breach] = field(default_factory=list)
    exchanges: int = 0

    @property
    def clients(self) -> list[str]:
        """The clients that some rule applied to."""
        return sorted({client for _, client in (*self.kept, *self.broken)})

    def counts(self, rule: type[ProtocolRule]) -> tuple[int, int]:
        """Return how many messages kept a rule, and how many broke it."""
        kept, broken = (
            sum(n for (code, _), n in each.items() if code == rule.code) for each in (self.kept, self.broken)
        )
        return kept, broken


def _unwatched(_number: int) -> None:
    """Nobody waits."""


def check(
    captures: Iterable[tuple[str, Capture]],
    rules: Sequence[type[ProtocolRule]] = RULES,
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
    made = [rule() for rule in result.rules]
    by_api: dict[tuple[str, bool, bool], list[tuple[str, ProtocolRule, Look]]] = {}
    clients: dict[int, str] = {}

    def client_of(event: MessageEvent) -> str:
        client = clients.get(event.connection)
        if client is None:
            client = clients[event.connection] = _client(capture, event)
        return client

    kept = result.kept
    for event in events(capture.unmasked()):
        if event.is_request:
            watch(event.number)
            result.exchanges += 1
        kind = event.api, event.is_request, event.is_read
        looks = by_api.get(kind)
        if looks is None:
            looks = by_api[kind] = _looks(made, *kind)
        for code, rule, look in looks:
            for found in look(event):
                if found.is_kept:
                    kept[code, client_of(found.event)] += 1
                else:
                    _add_breach(result, rule, found, name, client_of(found.event))
    for rule in made:
        for found in rule.end():
            if found.is_kept:
                kept[rule.code, client_of(found.event)] += 1
            else:
                _add_breach(result, rule, found, name, client_of(found.event))


def _looks(
    rules: Iterable[ProtocolRule], api: str, is_request: bool, is_read: bool
) -> list[tuple[str, ProtocolRule, Look]]:
    """Return the rules that look at messages of one side of an API, each with its code, and how it does."""
    name = "request" if is_request else "response"
    seeing = (rule for rule in rules if not rule.apis or (is_read and api in rule.apis))
    return [
        (rule.code, rule, getattr(rule, name)) for rule in seeing
        if getattr(type(rule), name) is not getattr(ProtocolRule, name)
    ]  # fmt: skip


def _add_breach(result: CheckResult, rule: ProtocolRule, found: Verdict, file: str, client: str) -> None:
    result.broken[rule.code, client] += 1
    if result.broken[rule.code, client] > MOST_BREACHES:
        return
    event = found.event
    start, size = _place(event, found.path)
    part = "request" if event.is_request else "response"
    result.breaches.append(
        Breach(type(rule), file, client, event.number, event.time_ns, part, found.path, start, size, found.words)
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

"""Hold captures to all rules, and count for each client what it kept and what it broke."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dissector.analysis.conformance.events import NOWHERE, MessageEvent, WantedMessages, events
from dissector.analysis.conformance.message_columns import MessageColumns
from dissector.analysis.conformance.proving import Proofs, prove
from dissector.analysis.conformance.rule import REST, ProtocolRule, RuleMemory, Verdict, Verdicts
from dissector.analysis.conformance.rules import RULES
from dissector.capture_session import Capture
from dissector.core.columns import ValueNumbers
from dissector.core.finding import Finding
from dissector.core.text import counted
from dissector.exchange.model import Exchange

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


@dataclass(repr=False)
class CheckResult:
    """The result of checking each rule. `kept` and `broken` count messages by the rule's code and the client;
    `breaches` are the messages that broke a rule, at most `MOST_BREACHES` of each rule and client.

    >>> capture.check()
    <check of 60 exchanges: 0 rules broken>
    """

    rules: Sequence[ProtocolRule] = RULES
    kept: Counter[tuple[str, str]] = field(default_factory=Counter)
    broken: Counter[tuple[str, str]] = field(default_factory=Counter)
    breaches: list[Breach] = field(default_factory=list)
    exchanges: int = 0
    files: int = 0

    def __repr__(self) -> str:
        codes = sorted({code for code, _ in self.broken})
        words = f"{counted(len(codes), 'rule')} broken" + (f": {', '.join(codes)}" if codes else "")
        return f"<check of {counted(self.exchanges, 'exchange')}: {words}>"

    def _repr_html_(self) -> str:
        from dissector.analysis.conformance.report import check_report  # which imports this
        from dissector.analysis.rendering import render_notebook

        return render_notebook(check_report(self))

    @property
    def clients(self) -> list[str]:
        """The clients to which a rule applied."""
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
    `watch` is called with the number of each exchange that is looked at, and may end it by an exception."""
    result = CheckResult(rules)
    for name, capture in captures:
        _check(result, name, capture, watch)
    return result


def _check(result: CheckResult, name: str, capture: Capture, watch: Callable[[int], None]) -> None:
    columns = MessageColumns(capture)
    result.files += 1
    result.exchanges += int(columns.has_request.sum())
    begun = [(rule, rule.begin()) for rule in result.rules]
    proofs = prove(columns, result.rules, watch)
    adder = _Adder(result, name, capture, columns, proofs)
    for place, event, numbers in _looked_at(columns, proofs, watch):
        side = _side(event)
        is_read = event.is_read
        for number in numbers:
            rule, memory = begun[number]
            if is_read or not rule.apis:
                adder.add(rule, getattr(memory, side)(event), place)
    looking = [(rule, memory) for rule, memory in begun if type(memory).closed is not RuleMemory.closed]
    for event, causes in _closed(capture, columns) if looking else ():
        for rule, memory in looking:
            adder.add(rule, memory.closed(event, causes), len(columns.exchange))
    for rule, memory in begun:
        adder.add(rule, memory.end(), len(columns.exchange))
    adder.finish()


def _looked_at(
    columns: MessageColumns, proofs: Proofs, watch: Callable[[int], None]
) -> Iterator[tuple[int, MessageEvent, list[int]]]:
    """Yield the messages that rules look at, in order, with the numbers of the rules."""
    places = proofs.places
    is_wanted = np.zeros(len(columns.exchange), np.bool_)
    is_wanted[places] = True
    sides = [np.where(at == NOWHERE, False, is_wanted[at]) for at in columns.places]
    chosen = np.flatnonzero(sides[0] | sides[1])
    wanted = zip(*(each[chosen].tolist() for each in (*sides, *columns.places)), strict=True)

    def exchanges() -> Iterator[tuple[Exchange, WantedMessages]]:
        for exchange, each in zip(columns.decoded(chosen), wanted, strict=True):
            watch(exchange.fields.number)
            yield exchange, WantedMessages(*each)

    edges = np.flatnonzero(np.diff(places, prepend=NOWHERE, append=len(is_wanted)))
    groups = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    for (place, event), (first, stop) in zip(events(exchanges()), groups, strict=True):
        yield place, event, proofs.rules[first:stop].tolist()


class _Adder:
    """Adds what rules say of one capture to the result."""

    def __init__(
        self, result: CheckResult, name: str, capture: Capture, columns: MessageColumns, proofs: Proofs
    ) -> None:
        self._result = result
        self._name = name
        self._capture = capture
        self._columns = columns
        self._proofs = proofs
        self._clients: dict[int, str] = {}

    def add(self, rule: ProtocolRule, verdicts: Verdicts, place: int) -> None:
        for found in verdicts or ():
            event = found.event
            connection = event.connection
            if connection not in self._clients:
                self._clients[connection] = self._client(connection, event, place)
            if found.is_kept:
                self._result.kept[rule.code, self._clients[connection]] += 1
            else:
                _add_breach(self._result, rule, found, self._name, self._clients[connection])

    def finish(self) -> None:
        """Add what columns proved."""
        for connection in self._proofs.first:
            if connection not in self._clients:
                self._clients[connection] = self._client(connection, None, len(self._columns.exchange))
        names = ValueNumbers[str]()
        numbers = np.zeros(max(self._clients, default=-1) + 1, np.int64)  # of the client, by connection
        numbers[list(self._clients)] = [names.of(client) for client in self._clients.values()]
        for rule, connections, counts in self._proofs.kept:
            of_clients = np.bincount(numbers[connections], counts).astype(np.int64)
            for client in np.flatnonzero(of_clients).tolist():
                self._result.kept[rule, names.values[client]] += int(of_clients[client])

    def _client(self, connection: int, event: MessageEvent | None, place: int) -> str:
        """The client of a connection: its software, else the client id of the first message that a rule applies to."""
        name, version = self._capture.connections.software(connection)
        if name:
            return f"{name} {version}".strip()
        first = self._proofs.first.get(connection, place)
        if event is None or first < place:
            number = int(self._columns.found.client_id[self._columns.exchange[first]])
            client_id = self._capture.index.client_id(number)
        else:
            client_id = event.exchange.fields.client_id
        return f"client id {client_id}" if client_id else self._capture.connections.ends(connection)[0]


def _side(event: MessageEvent) -> str:
    """Return the name of the look that rules have at a message."""
    return "request" if event.is_request else "orphan" if event.is_orphan else "response"


def _closed(capture: Capture, columns: MessageColumns) -> Iterator[tuple[MessageEvent, list[Finding]]]:
    """Yield requests on which their connections were closed, with what the examination finds about the versions of
    them. It is limited to this, unless it was begun."""
    closed: list[MessageEvent] = []
    chosen = np.flatnonzero(columns.has_request & ~columns.is_answered & ~columns.has_asked)
    for exchange in columns.decoded(chosen):
        event = MessageEvent.of(exchange, is_request=True)
        if event.is_closed:
            closed.append(event)
        if len(closed) == MOST_BREACHES:
            break
    if not closed:
        return
    # Imported on use: few captures have a request on which its connection was closed.
    from dissector.findings.detectors.refused_versions import VERSION_CODES

    is_begun = capture.findings.examination is not None
    if not is_begun:
        capture.findings.limit_to(columns.rows[chosen], VERSION_CODES)
    for _ in capture.findings.examine():
        pass
    found: dict[int, list[Finding]] = {}
    for row, finding in capture.findings.cross_message():
        if finding.code in VERSION_CODES:
            found.setdefault(row + 1, []).append(finding)
    if not is_begun:
        capture.findings.restart()  # for whoever looks for other findings
    yield from ((each, found.get(each.number, [])) for each in closed)


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

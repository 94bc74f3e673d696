"""Finds out by columns which messages of a capture each rule has to look at, and counts how often the others keep it.

Of a rule that looks at one message alone, messages that are equal in the fields that it reads, and pass none of its
tests, are looked at once, and so are those that pass one and are the same to the byte. If that one keeps the rule, all
do; else each is looked at for itself, as are those that columns can't read. What a rule that remembers must see, it
says itself (`RuleMemory.proof`), by what came before each message in the order of time: `latest`, `running`, `since`,
of columns of messages, `(m,)` each.

Invariant: verdicts are those of a look at each message in order (a property test).
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.conformance.declared_fields import SideFields, silencing
from dissector.analysis.conformance.events import MessageEvent
from dissector.analysis.conformance.message_columns import NO_KEY, MessageColumns
from dissector.analysis.conformance.rule import Look, Proof, ProtocolRule, RuleMemory, Verdicts
from dissector.core.arrays import Bool, Int64, UInt8
from dissector.findings.framework.read_fields import REQUEST, RESPONSE, SIDES
from dissector.protocol.kernel.shredding import numbered_rows

_KEY_BITS: Final = 32
NOTHING: Final = -1


class Proofs(NamedTuple):
    """What is left to look at in a capture, and what is proven."""

    places: Int64
    """Places of messages, ascending, with a rule each, `(n,)`."""
    rules: Int64
    """The numbers of the rules, ascending for a message."""
    kept: Sequence[tuple[str, Int64, Int64]]
    """Verdicts of messages that need no look: the rule's code, connections, and how many of each."""
    first: dict[int, int]
    """By connection, the place of the first message with such a verdict."""


def prove(columns: MessageColumns, rules: Sequence[ProtocolRule], watch: Callable[[int], None]) -> Proofs:
    """Ask all rules. `watch` is called with the number of each exchange that is decoded for them."""
    single = [(number, rule) for number, rule in enumerate(rules) if rule.reads is not None]
    silencing_reads = [(rule.apis, silencing(rule.reads or {})) for _, rule in single]
    answers = columns.answers([*silencing_reads, *((rule.apis, rule.reads or {}) for _, rule in single)])
    silent, passing = answers[: len(single)], answers[len(single) :]
    looks = [_Look.of(*each, columns, *of_rule) for each, *of_rule in zip(single, silent, passing, strict=True)]
    del answers, silent, passing  # as large as all looks
    found = _Found(columns, rules)
    for number, rule in enumerate(rules):
        if rule.reads is None:
            found.add(number, rule.begin.proof(columns, rule.apis))
    _judge(looks, columns, rules, watch)
    for look in looks:
        found.add(look.number, look.proof(columns))
    return found.proofs()


class _Found:
    """Adds up proofs."""

    def __init__(self, columns: MessageColumns, rules: Sequence[ProtocolRule]) -> None:
        self._columns = columns
        self._rules = rules
        self._has_verdict: Bool = np.zeros(len(columns.exchange), np.bool_)
        self._kept: list[tuple[str, Int64, Int64]] = []
        self._places: list[Int64] = [np.zeros(0, np.int64)]
        self._numbers: list[Int64] = [np.zeros(0, np.int64)]
        is_orphan = ~columns.is_request & ~columns.is_response
        self._sides = {"request": columns.is_request, "response": columns.is_response, "orphan": is_orphan}

    def add(self, number: int, proof: Proof) -> None:
        """Add what is proven for a rule."""
        rule, connection = self._rules[number], self._columns.connection
        if proof.kept is not None:
            places = np.flatnonzero(proof.kept * ~proof.open)
            self._has_verdict[places] = True
            counts = np.bincount(connection[places], proof.kept[places]).astype(np.int64)
            some = np.flatnonzero(counts)
            self._kept.append((rule.code, some, counts[some]))
        is_seen = np.zeros(len(connection), np.bool_)
        for name, are in self._sides.items():
            if getattr(rule.begin, name) is not getattr(RuleMemory, name):
                is_seen |= are
        places = np.flatnonzero(proof.open & is_seen)
        self._places.append(places)
        self._numbers.append(np.full(len(places), number))

    def proofs(self) -> Proofs:
        """All of them."""
        places, numbers = np.concatenate(self._places), np.concatenate(self._numbers)
        order = np.lexsort((numbers, places))
        with_verdict = np.flatnonzero(self._has_verdict)
        connections, first = np.unique(self._columns.connection[with_verdict], return_index=True)
        pairs = zip(connections.tolist(), with_verdict[first].tolist(), strict=True)
        return Proofs(places[order], numbers[order], self._kept, dict(pairs))


class _Look(NamedTuple):
    """A rule that looks at one message alone."""

    number: int
    is_request: bool
    equal: UInt8
    """Which exchanges are equal to others in what it reads, as far as columns can tell, `(e,)` in bits: all rules have
    theirs at once."""
    group: Int64
    """Of each of them, a number, in the smallest type: of one number those that are equal in what it reads."""
    first: Int64
    """By number, the first exchange."""
    kept: Int64
    """By number, how many verdicts the first one is worth; -1 if it breaks the rule."""
    open: UInt8
    """Which exchanges are looked at for themselves, `(e,)` in bits."""

    @classmethod
    def of(cls, number: int, rule: ProtocolRule, columns: MessageColumns, silent: Bool, passing: Bool) -> "_Look":
        """Group the messages of a rule, but for exchanges of which it says nothing. Those that pass a test are with
        others only if they are the same to the byte."""
        assert rule.reads is not None
        is_request = rule.begin.request is not RuleMemory.request
        concerned = columns.of(rule.apis) & (columns.has_request if is_request else columns.is_answered)
        concerned &= ~silent
        sides = {side: SideFields.of(rule.reads, side) for side in SIDES}
        readable = concerned & columns.is_readable  # what a message that can't be read is tried as depends on the order
        is_equal = readable & ~passing
        keys = np.zeros(len(concerned), np.int64)
        for name in (REQUEST,) if is_request else (REQUEST, RESPONSE):
            if (name == REQUEST and not is_request and not sides[REQUEST].key_fields) or not is_equal.any():
                continue
            of_side = columns.keys(rule.apis, sides[name])
            is_equal &= of_side != NO_KEY
            keys <<= _KEY_BITS
            keys |= of_side
        passing_test = np.flatnonzero(readable & passing)
        same = columns.same(passing_test, is_request=is_request)
        is_repeated = np.bincount(same)[same] > 1
        is_equal[passing_test[is_repeated]] = True
        keys[passing_test[is_repeated]] = -1 - same[is_repeated]
        exchanges = np.flatnonzero(is_equal)
        group, first = numbered_rows(keys[exchanges])
        kept = np.zeros(len(first), np.int64)
        smallest = group.astype(np.min_scalar_type(len(first)))
        is_open = concerned & ~is_equal
        return cls(number, is_request, np.packbits(is_equal), smallest, exchanges[first], kept, np.packbits(is_open))

    def proof(self, columns: MessageColumns) -> Proof:
        """What follows from the looks at the first of each number."""
        at_side = columns.places.request if self.is_request else columns.places.response
        kept = np.zeros(len(columns.exchange), np.int64)
        is_open = np.zeros(len(columns.exchange), np.bool_)
        verdicts = self.kept[self.group]
        is_equal, of_exchanges = (
            np.unpackbits(bits, count=len(at_side)).view(np.bool_) for bits in (self.equal, self.open)
        )
        places = at_side[is_equal]
        kept[places] = np.maximum(verdicts, 0)
        is_open[places[verdicts < 0]] = True
        is_open[at_side[of_exchanges]] = True
        return Proof(is_open, kept)


def _judge(
    looks: Sequence[_Look], columns: MessageColumns, rules: Sequence[ProtocolRule], watch: Callable[[int], None]
) -> None:
    """Let rules look at the first message of each number."""
    firsts = np.concatenate([np.zeros(0, np.int64), *(look.first for look in looks)])
    of_look = np.repeat(np.arange(len(looks)), [len(look.first) for look in looks])
    of_group = np.concatenate([np.zeros(0, np.int64), *(np.arange(len(look.first)) for look in looks)])
    order = np.argsort(firsts, kind="stable")
    chosen, starts = np.unique(firsts[order], return_index=True)
    parts = np.split(order, starts[1:]) if len(starts) else []
    for exchange, part in zip(columns.decoded(chosen), parts, strict=True):
        watch(exchange.fields.number)
        events: dict[bool, MessageEvent] = {}
        for at in part.tolist():
            look = looks[of_look[at]]
            if look.is_request not in events:
                events[look.is_request] = MessageEvent.of(exchange, is_request=look.is_request)
            see: Look = getattr(rules[look.number].begin, REQUEST if look.is_request else RESPONSE)
            look.kept[of_group[at]] = _count(see(events[look.is_request]))


def _count(verdicts: Verdicts) -> int:
    """How many verdicts there are, -1 if one is that the rule is broken."""
    found = list(verdicts or ())
    return len(found) if all(each.is_kept for each in found) else -1


def latest(keys: Int64, sets: Bool) -> Int64:
    """The place of the last message before each one that has the same key and sets something; `NOTHING` for none."""
    if not sets.any():
        return np.full(len(keys), NOTHING)
    order = np.argsort(keys, kind="stable")
    places = np.where(sets[order], np.arange(len(order)), NOTHING)
    last = np.concatenate([[NOTHING], np.maximum.accumulate(places)[:-1]])
    begins = np.flatnonzero(np.diff(keys[order], prepend=keys[order][:1] - 1))
    group_start = np.repeat(begins, np.diff(begins, append=len(order)))
    found = np.full(len(order), NOTHING)
    found[order] = np.where(last >= group_start, order[last], NOTHING)
    return found


def running(keys: Int64, change: Int64) -> Int64:
    """The sum of `change` over each message and those before it that have the same key."""
    order = np.argsort(keys, kind="stable")
    total = np.cumsum(change[order])
    begins = np.flatnonzero(np.diff(keys[order], prepend=keys[order][:1] - 1))
    before = np.concatenate([[0], total])[begins]
    sums = np.zeros(len(order), np.int64)
    sums[order] = total - np.repeat(before, np.diff(begins, append=len(order)))
    return sums


def since(columns: MessageColumns, begins: Bool, apis: frozenset[str], *, of_connection: bool = True) -> Proof:
    """To be looked at: messages of some APIs from the request of the first exchange that `begins` something on, on its
    connection or anywhere."""
    of_apis = columns.messages_of(columns.of(apis))
    if not begins.any():
        return Proof.nothing(columns)
    places = columns.places.request[begins]
    if not of_connection:
        return Proof(of_apis & (np.arange(len(of_apis)) >= places.min()))
    first = np.full(int(columns.found.connection.max(initial=0)) + 1, len(of_apis))
    np.minimum.at(first, columns.found.connection[begins], places)
    return Proof(of_apis & (np.arange(len(of_apis)) >= first[columns.connection]))


def unless(kept: Int64, breaks: Bool, of: Int64) -> Proof:
    """Proof of verdicts, but for those of the connections, or what else `of` has of messages, where one message
    `breaks` the rule or can't be judged."""
    is_open = np.isin(of, np.unique(of[breaks])) if breaks.any() else np.zeros(len(breaks), np.bool_)
    return Proof(is_open, kept)


def of_requests(columns: MessageColumns, kept: Int64, is_open: Bool) -> Proof:
    """Proof of what the requests of exchanges are worth, `(e,)`, but for those that are to be looked at."""
    requests = columns.is_request
    return Proof(is_open[columns.exchange] & requests, np.where(requests, kept[columns.exchange], 0))

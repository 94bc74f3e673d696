"""The messages of a capture as columns, for what rules can say without decoding them.

A rule asks for the exchanges that pass tests of fields, for numbers of exchanges that are equal in some fields, for
numbers of bodies, or for batches. Exchanges count from 0, `(e,)`; messages have places in the order of time, `(m,)`.

Invariants: what tests and numbers say is what decoding an exchange gives. What columns can't read is decoded for tests,
and has no key.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, cast

import numpy as np

from dissector.analysis.conformance.batch_columns import BatchColumns, batches_in
from dissector.analysis.conformance.declared_fields import TROUBLE, Reads, SideFields, is_set
from dissector.analysis.conformance.events import NOWHERE, Computed, MessageEvent, MessagePlaces
from dissector.bulk.body_fields import NO_TEXT, ElementNames, OfBodies, OfElements
from dissector.bulk.tested_fields import Test, TestedMessages
from dissector.capture_session import Capture
from dissector.core.arrays import Bool, Int32, Int64
from dissector.core.columns import ValueNumbers
from dissector.core.grouping import by_distinct
from dissector.exchange.model import Exchange
from dissector.findings.framework.read_fields import REQUEST, RESPONSE, SIDES
from dissector.protocol.codec.program import Program
from dissector.protocol.kernel.shredding import numbered_rows
from dissector.protocol.records.batch import NO_PRODUCER
from dissector.protocol.schema.loader import api_named

NO_KEY: Final = 0
_CLIENT_BITS: Final = 32
_TROUBLE: Final = SideFields.of({f"response.**.{name}": is_set for name in TROUBLE}, RESPONSE)


class MessageColumns:
    """Of one capture, which has been read to its end."""

    def __init__(self, capture: Capture) -> None:
        self._unmasked = capture.unmasked()
        self._ends = capture.connections.ends
        self._client_id = capture.index.client_id
        found = capture.index.numbers(np.arange(len(capture)))
        self.rows: Int64 = np.flatnonzero(found.is_exchange)
        """The rows of the exchanges."""
        self.found = found.where(self.rows)
        """Their columns."""
        self.places = MessagePlaces.of(self.found)
        has_request, has_response = self.places.request != NOWHERE, self.places.response != NOWHERE
        self.has_request = has_request
        self.is_answered: Bool = has_request & has_response
        self.exchange: Int64 = np.empty(int(has_request.sum() + has_response.sum()), np.int64)
        """Of each message the exchange that it is in."""
        self.is_request: Bool = np.zeros(len(self.exchange), np.bool_)
        self.exchange[self.places.request[has_request]] = np.flatnonzero(has_request)
        self.exchange[self.places.response[has_response]] = np.flatnonzero(has_response)
        self.is_request[self.places.request[has_request]] = True
        self._keys: dict[object, Int64] = {}
        self._firsts: dict[str, Int64] = {}
        self._are_read: dict[str, Bool] = {}
        self._have_trouble: Bool = np.zeros(len(self.rows), np.bool_)
        self._is_blank: Bool = np.zeros(len(self.rows), np.bool_)
        """Which exchanges were decoded and have no field: all their bodies are empty, or can't be read to the end."""
        self._of_apis: dict[frozenset[int], Bool] = {}
        self._texts = ValueNumbers[str]()
        self.empty_text = self._texts.of("")
        """The number of the text without a character."""
        self._computed: dict[Callable[[MessageColumns], object], object] = {}

    def text(self, text: str) -> int:
        """The number of a text, as `texts` gives it."""
        return self._texts.of(text)

    def once(self, compute: "Callable[[MessageColumns], Computed]") -> Computed:
        """What a function gives for this capture: computed for the first rule that asks, kept for the others."""
        if compute not in self._computed:
            self._computed[compute] = compute(self)
        return cast(Computed, self._computed[compute])

    @cached_property
    def is_response(self) -> Bool:
        """Which messages answer a request of the capture."""
        are: Bool = self.is_answered[self.exchange] & ~self.is_request
        return are

    @cached_property
    def connection(self) -> Int64:
        """Of each message."""
        return self.found.connection[self.exchange]

    @cached_property
    def time_ns(self) -> Int64:
        """Of each message."""
        found = self.found
        return np.where(self.is_request, found.request_time_ns[self.exchange], found.response_time_ns[self.exchange])

    @cached_property
    def server(self) -> Int64:
        """By exchange, a number for its broker's address."""
        return self._numbered_ends[1]

    @cached_property
    def answers_none(self) -> Bool:
        """Which exchanges are a response that answers no request: a request would be in the capture."""
        found = np.zeros(len(self.rows), np.bool_)
        orphans = np.flatnonzero(~self.has_request)
        found[orphans] = self._unmasked.messages.answer_none(self.rows[orphans])
        return found

    def request_ids(self, exchange: int) -> tuple[str, int, int]:
        """Client id, API key and correlation id of the request of an exchange, whose header is plain."""
        found = self.found
        client_id = self._client_id(int(found.client_id[exchange]))
        return str(client_id), int(found.api_key[exchange]), int(found.correlation_id[exchange])

    @cached_property
    def client(self) -> Int64:
        """By exchange, a number for its client's host and client id; one without is called None."""
        texts = ValueNumbers[str]()
        ids = by_distinct(self.found.client_id, lambda number: texts.of(str(self._client_id(number))), np.int64)
        return self._numbered_ends[0] << _CLIENT_BITS | ids

    @cached_property
    def _numbered_ends(self) -> tuple[Int64, Int64]:
        """By exchange, numbers for its client's host and for its broker's address."""
        hosts, brokers = ValueNumbers[str](), ValueNumbers[str]()
        connections, which = np.unique(self.found.connection, return_inverse=True)
        ends = [self._ends(each) for each in connections.tolist()]
        of_client = np.array([hosts.of(client.rpartition(":")[0]) for client, _ in ends], np.int64)
        return of_client[which], np.array([brokers.of(broker) for _, broker in ends], np.int64)[which]

    def of(self, apis: Iterable[str]) -> Bool:
        """Which exchanges are of some APIs, or of any for none; read only, as many rules ask for the same."""
        keys = frozenset(known.key for name in apis if (known := api_named(name)) is not None)
        if keys not in self._of_apis:
            are = self.has_request & (np.isin(self.found.api_key, list(keys)) if keys else True)
            are.flags.writeable = False
            self._of_apis[keys] = are
        return self._of_apis[keys]

    def messages_of(self, exchanges: Bool) -> Bool:
        """Which messages belong to some exchanges."""
        are: Bool = exchanges[self.exchange]
        return are

    def decoded(self, exchanges: Int64) -> Iterator[Exchange]:
        """Exchanges, decoded on demand; ascending."""
        return self._unmasked.at(self.rows[exchanges])

    def tested(self, apis: Iterable[str], reads: Reads) -> Bool:
        """Which exchanges of some APIs, or of any for none, pass one of the tests of fields."""
        [passes] = self.answers([(apis, reads)])
        return passes

    def answers(self, questions: Sequence[tuple[Iterable[str], Reads]]) -> list[Bool]:
        """The same for several, which are read together."""
        chosen = [self.of(apis) for apis, _ in questions]
        passes = [np.zeros(len(self.rows), np.bool_) for _ in questions]
        is_careful = [np.zeros(len(self.rows), np.bool_) for _ in questions]
        for side in SIDES:
            fields = [SideFields.of(reads, side) for _, reads in questions]
            asked = {n: each for n, each in enumerate(fields) if each.tests}
            there = self._there(side)
            of_trouble = {n for n, each in asked.items() if side == RESPONSE and each.is_of_trouble}
            asks_all = any(chosen[n][there].all() for n in asked if n not in of_trouble)
            for n in asked:
                chosen[n] = chosen[n] & (self.may_have_trouble if n in of_trouble and not asks_all else there)
            some = np.flatnonzero(np.any([chosen[n] for n in asked], axis=0)) if asked else np.zeros(0, np.int64)
            if not len(some):
                continue
            ask = self._ask_all if asks_all else self._ask
            found = ask(some, side, asked, [apis for apis, _ in questions])
            for n in asked:
                passes[n][some] |= found.passes[n] & found.is_read & chosen[n][some]
                is_careful[n][some] |= ~found.is_read & chosen[n][some]
        self._decode_unread([reads for _, reads in questions], is_careful, passes)
        return passes

    def _there(self, side: str) -> Bool:
        """Which exchanges have a message of a side: a response to a request of the capture."""
        return self.has_request if side == REQUEST else self.is_answered

    def _first_equal(self, side: str) -> Int64:
        """By exchange, the first one whose message of a side is the same to the byte; `NOWHERE` for no message."""
        if side not in self._firsts:
            chosen = np.flatnonzero(self._there(side))
            firsts = np.full(len(self.rows), NOWHERE)
            firsts[chosen] = chosen[self._unmasked.messages.first_equal(self.rows[chosen], is_request=side == REQUEST)]
            self._firsts[side] = firsts
        return self._firsts[side]

    def _pairs(self, exchanges: Int64) -> Int64:
        """Keys of some exchanges: those of one key have both messages the same to the byte."""
        return self._first_equal(REQUEST)[exchanges] << 32 | self._first_equal(RESPONSE)[exchanges] - NOWHERE

    def same(self, exchanges: Int64, *, is_request: bool) -> Int64 | Int32:
        """Numbers of some exchanges, from 0: those of one number have requests that are the same to the byte, and
        responses, too, if not only the request matters."""
        return self._first_equal(REQUEST)[exchanges] if is_request else numbered_rows(self._pairs(exchanges))[0]

    def different(self, exchanges: Int64, side: str) -> tuple[Int64, Int64]:
        """Exchanges that have all different messages of a side of some, ascending, and which of them each has: what is
        the same to the byte is read once."""
        firsts = self._first_equal(side)[exchanges]
        is_first = np.zeros(len(self.rows), np.bool_)
        is_first[firsts] = True
        return np.flatnonzero(is_first), (np.cumsum(is_first) - 1)[firsts]

    def _ask(
        self, exchanges: Int64, side: str, asked: Mapping[int, SideFields], apis: Sequence[Iterable[str]]
    ) -> TestedMessages:
        """Ask the messages of one side."""
        keys = {n: {known.key for name in apis[n] if (known := api_named(name)) is not None} for n in asked}

        def tests(api_key: int, program: Program) -> list[Test]:
            of_api = (n for n in asked if not keys[n] or api_key in keys[n])
            return [test for n in of_api for test in asked[n].column_tests(n, program)]

        different, which = self.different(exchanges, side)
        found = self._unmasked.messages.tested(
            self.rows[different], tests, questions=len(apis), is_request=side == REQUEST,
            joins=any(each.reads_records for each in asked.values()),
        )  # fmt: skip
        return TestedMessages(found.is_read[which], np.take(found.passes, which, axis=1))

    def _ask_all(
        self, exchanges: Int64, side: str, asked: Mapping[int, SideFields], apis: Sequence[Iterable[str]]
    ) -> TestedMessages:
        """Ask all messages of one side, and keep which of them can be read, and which may have trouble."""
        trouble = {len(apis): _TROUBLE} if side == RESPONSE else {}
        found = self._ask(exchanges, side, {**asked, **trouble}, [*apis, *(() for _ in trouble)])
        self._are_read[side] = np.zeros(len(self.rows), np.bool_)
        self._are_read[side][exchanges] = found.is_read
        for n in trouble:
            self._have_trouble[exchanges] = found.passes[n] | ~found.is_read
        return found

    def _read(self, side: str) -> Bool:
        """Which exchanges have a message of a side that columns can read."""
        if side not in self._are_read:
            self._ask_all(np.flatnonzero(self._there(side)), side, {}, [])
        return self._are_read[side]

    def _decode_unread(self, reads: Sequence[Reads], is_careful: Sequence[Bool], passes: Sequence[Bool]) -> None:
        """Ask what columns can't read, of exchanges that are the same to the byte one. Those without a field pass no
        test but those of records; they are decoded once, as all of a damaged capture may be such."""
        sides = [[SideFields.of(each, side) for side in SIDES] for each in reads]
        for n, of_question in enumerate(sides):
            for side, fields in zip(SIDES, of_question, strict=True):
                if fields.reads_records:
                    passes[n][:] |= is_careful[n] & self._is_blank & self._there(side)
        asked = np.any([are & ~known for are, known in zip(is_careful, passes, strict=True)], axis=0)
        careful = np.flatnonzero(asked & ~self._is_blank)
        which, firsts = numbered_rows(self._pairs(careful))
        decoded = careful[firsts]
        is_blank, passing = np.zeros(len(decoded), np.bool_), np.zeros((len(sides), len(decoded)), np.bool_)
        for n, (at, exchange) in enumerate(zip(decoded.tolist(), self.decoded(decoded), strict=True)):
            is_blank[n] = not any(each is not None and each.body for each in (exchange.request, exchange.response))
            for question, of_question in enumerate(sides):
                if is_careful[question][at]:
                    passing[question, n] = any(side.passes(exchange) for side in of_question)
        self._is_blank[careful] = is_blank[which]
        for question, found in enumerate(passing):
            passes[question][careful] |= found[which] & is_careful[question][careful]

    @cached_property
    def may_have_trouble(self) -> Bool:
        """Which exchanges have a response with an error or that was throttled, or one that columns can't read."""
        self._read(RESPONSE)
        return self._have_trouble

    def keys(self, apis: frozenset[str], fields: SideFields) -> Int64:
        """Numbers of the messages of one side, by exchange: those of one number are equal in the fields that are read,
        but for what their tests see. `NO_KEY` for those of other APIs, and for those that columns can't read."""
        wanted = fields.key, apis
        if wanted not in self._keys:
            is_request = fields.key[0] == REQUEST
            chosen = np.flatnonzero(self.of(apis) & self._there(fields.key[0]))
            keys = np.full(len(self.rows), NO_KEY, np.int32)
            if not fields.has_keys:
                keys[chosen] = np.where(self._read(fields.key[0])[chosen], self._layouts[chosen], NO_KEY)
            elif len(chosen):
                numbers = self._unmasked.messages.field_keys(
                    fields.is_key, is_request=is_request, outlines=fields.is_outline, in_columns=True
                )
                different, which = self.different(chosen, fields.key[0])
                keys[chosen] = numbers(self.rows[different], None)[which]
            self._keys[wanted] = keys.astype(np.min_scalar_type(int(keys.max(initial=NO_KEY))))  # there are many
        return self._keys[wanted]

    @cached_property
    def _layouts(self) -> Int32:
        """By exchange, a number for its API and version, from 1."""
        return numbered_rows(self.found.api_key, self.found.version)[0] + 1

    @cached_property
    def is_request_readable(self) -> Bool:
        """Which exchanges have a request that columns can read."""
        return self._read(REQUEST)

    @cached_property
    def is_readable(self) -> Bool:
        """Which exchanges columns can read, both messages, or the one that is there."""
        readable: Bool = self.is_request_readable & (self._read(RESPONSE) | ~self.is_answered)
        return readable

    def numbers(self, apis: Iterable[str], names: Sequence[str], *, side: str) -> dict[str, OfBodies]:
        """Numbers that stand alone in the bodies of one side, by name, for both messages of each exchange: ``(m,)``.
        Where columns can't read a body, it is decoded."""
        is_request = side == REQUEST
        chosen = np.flatnonzero(self.of(apis) & self._there(side))
        if not len(chosen):
            return dict.fromkeys(names, OfBodies.none(len(self.exchange)))
        found = {name: OfBodies.none(len(self.rows)) for name in names}
        different, which = self.different(chosen, side)
        read = self._unmasked.messages.numbers(self.rows[different], names, is_request=is_request)
        for name, (values, is_there) in read.items():
            found[name].values[chosen], found[name].is_there[chosen] = values[which], is_there[which]
        for at, name, value in self._decoded_fields(chosen, names, is_request=is_request):
            found[name].is_there[at] = isinstance(value, int)
            found[name].values[at] = value if isinstance(value, int) else 0
        places = self.exchange
        return {name: OfBodies(each.values[places], each.is_there[places]) for name, each in found.items()}

    def texts(self, apis: Iterable[str], names: Sequence[str], *, side: str) -> dict[str, Int64]:
        """Numbers for texts that stand alone in the bodies of one side, by name, for both messages of each exchange:
        ``(m,)``; `NO_TEXT` where there is none. Where columns can't read a body, it is decoded."""
        is_request = side == REQUEST
        chosen = np.flatnonzero(self.of(apis) & self._there(side))
        found = {name: np.full(len(self.rows), NO_TEXT) for name in names}
        if not len(chosen):
            return dict.fromkeys(names, np.full(len(self.exchange), NO_TEXT))
        different, which = self.different(chosen, side)
        read = self._unmasked.messages.body_texts(self.rows[different], names, self._texts, is_request=is_request)
        for name, numbers in read.items():
            found[name][chosen] = numbers[which]
        for at, name, value in self._decoded_fields(chosen, names, is_request=is_request):
            found[name][at] = self._texts.of(value) if isinstance(value, str) else NO_TEXT
        return {name: each[self.exchange] for name, each in found.items()}

    def _decoded_fields(
        self, chosen: Int64, names: Sequence[str], *, is_request: bool
    ) -> Iterator[tuple[int, str, object]]:
        """Yield the fields of bodies that columns can't read, by exchange and name."""
        careful = chosen[~(self.is_request_readable if is_request else self.is_readable)[chosen]]
        yield from ((at, name, None) for at in careful[self._is_blank[careful]].tolist() for name in names)
        careful = careful[~self._is_blank[careful]]
        for at, exchange in zip(careful.tolist(), self.decoded(careful), strict=True):
            event = MessageEvent.of(exchange, is_request=is_request)
            for name in names:
                yield at, name, event.body.get(name) if event.is_read else None

    def elements(self, apis: Iterable[str], names: ElementNames, *, side: str) -> OfElements:
        """Elements of a list in the bodies of one side, by exchange, with the numbers of `texts`. What columns can't
        read has none."""
        chosen = np.flatnonzero(self.of(apis) & self._there(side))
        found = self._unmasked.messages.elements(
            self.rows[chosen], names, self._texts, is_request=side == REQUEST
        )  # fmt: skip
        return found._replace(row=chosen[found.row])

    @cached_property
    def batches(self) -> BatchColumns:
        """The batches of Produce requests."""
        topics = ValueNumbers[str]()
        chosen = np.flatnonzero(self.of({"Produce"}))
        found = self._unmasked.messages.single_batches(self.rows[chosen], topics)
        is_odd = np.zeros(len(self.rows), np.bool_)
        odd = chosen[~found.is_read]
        different, which = self.different(odd, REQUEST)
        for at, exchange in zip(different.tolist(), self.decoded(different), strict=True):
            is_odd[at] = any(
                batch.producer_id != NO_PRODUCER or batch.is_transactional
                for topic in MessageEvent.of(exchange, is_request=True).body.get("topic_data", ())
                for partition in topic["partition_data"]
                for batch in batches_in(partition["records"] or b"")
            )
        is_odd[odd] = is_odd[different[which]]
        return BatchColumns(is_odd, found.columns._replace(at=chosen[found.columns.at]))

    @cached_property
    def has_asked(self) -> Bool:
        """Of which exchanges the client asked for versions before, on the connection, or asks now."""
        asks = self.of({"ApiVersions"})
        first = np.full(int(self.found.connection.max(initial=0)) + 1, len(self.exchange))
        np.minimum.at(first, self.found.connection[asks], self.places.request[asks])
        has_asked: Bool = self.places.request >= first[self.found.connection]
        return has_asked

"""Rules on errors after which a request is to be sent again."""

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.conformance.declared_fields import is_one_of
from dissector.analysis.conformance.events import Body, MessageEvent
from dissector.analysis.conformance.message_columns import MessageColumns
from dissector.analysis.conformance.rule import Proof, RuleBook, RuleMemory, Verdict, partitions
from dissector.core.text import duration
from dissector.protocol.kernel.shredding import numbered_rows
from dissector.protocol.schema.errors import error_name, is_retriable, known_errors
from dissector.protocol.schema.field_names import ERROR_CODES

RULES: Final = RuleBook()
PATIENCE_NS: Final = 5_000_000_000
"""A client that goes on for so long without trying again has given up: between tries it waits for a second at most."""
NO_WORK: Final = frozenset({"ApiVersions", "Metadata", "FindCoordinator", "SaslHandshake", "SaslAuthenticate"})
"""Requests that a client sends while it looks for whom to ask again."""
RETRIED: Final = frozenset(
    {"Produce", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn", "JoinGroup",
     "SyncGroup", "OffsetCommit", "OffsetFetch"}
)  # fmt: skip
"""APIs whose request is lost unless it is sent again. Polls come again by themselves."""
LISTS: Final = ("groups", "transactions")
NAMES: Final = ("transactional_id", "v3_and_below_transactional_id", "group_id")


class _SentWork(NamedTuple):
    """What a request does: which API, for whom, of which client."""

    client: str
    api: str
    subject: str


class _Failure(NamedTuple):
    """A response with a retriable error."""

    event: MessageEvent
    path: str
    error: int


@RULES.memory("retriable-error-given-up", "Kafka's RetriableException; KIP-98 and KIP-360 for transactions")
class RetriableErrors(RuleMemory):
    """after a retriable error, a client that continues for 5 s or more sends the request again."""

    def __init__(self) -> None:
        self._failed: dict[_SentWork, _Failure] = {}
        self._last_ns: dict[str, int] = {}
        """The last request of each client that does some work."""

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """Failures; of each client the requests of the APIs that failed, from then on; and the last request of each of
        its connections."""
        retriable = is_one_of(*(code for code in known_errors() if is_retriable(code)))
        failed = columns.tested(RETRIED, {f"response.**.{name}": retriable for name in ERROR_CODES})
        if not failed.any():
            return Proof.nothing(columns)
        concerned = np.isin(columns.client, columns.client[failed])
        works = np.flatnonzero(columns.is_request & columns.messages_of(concerned & ~columns.of(NO_WORK)))
        _, last = np.unique(columns.connection[works[::-1]], return_index=True)
        which = numbered_rows(columns.client, columns.found.api_key.astype(np.int64))[0].astype(np.int64)
        first = np.full(int(which.max()) + 1, len(columns.exchange))
        np.minimum.at(first, which[failed], columns.places.request[failed])
        may_be_again = columns.messages_of(columns.of(RETRIED)) & columns.is_request
        may_be_again &= np.arange(len(may_be_again)) >= first[which[columns.exchange]]
        is_open = may_be_again | (columns.is_response & columns.messages_of(failed))
        is_open[works[::-1][last]] = True
        return Proof(is_open)

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        client = _client(event)
        if event.api not in NO_WORK:
            self._last_ns[client] = event.time_ns
        if event.api in RETRIED:
            for subject in _subjects(event):
                failed = self._failed.pop(_SentWork(client, event.api, subject), None)
                if failed is not None:
                    yield Verdict(failed.event, True, failed.path, "")

    def response(self, event: MessageEvent) -> None:
        if event.api in RETRIED:
            client = _client(event)
            for subject, path, error in _errors(event):
                if is_retriable(error):
                    self._failed[_SentWork(client, event.api, subject)] = _Failure(event, path, error)

    def end(self) -> Iterator[Verdict]:
        for work, failed in self._failed.items():
            went_on = self._last_ns.get(work.client, 0) - failed.event.time_ns
            if went_on >= PATIENCE_NS:
                words = f"{error_name(failed.error)}, and no {work.api} again in the {duration(went_on)} that followed"
                yield Verdict(failed.event, False, failed.path, words)


def _client(event: MessageEvent) -> str:
    """Return who sends the requests of a connection: its host and client id."""
    row = event.exchange.fields
    return f"{row.client.rpartition(':')[0]} {row.client_id}"


def _subjects(event: MessageEvent) -> Iterator[str]:
    """Yield what a request is for: of a Produce each partition, else a transaction or a group."""
    if event.api == "Produce":
        for topic, partition, _ in partitions(event.body, "topic_data", "partition_data"):
            yield f"{event.topic(topic)}-{partition['index']}"
    else:
        yield _named(event.body)


def _named(request: Body) -> str:
    """Return the transaction or the group that a request names, the first one where it can have several."""
    several = next((request[name] for name in LISTS if request.get(name)), None)
    named = several[0] if several else request
    return next((str(named[name]) for name in NAMES if named.get(name)), "")


def _errors(event: MessageEvent) -> Iterator[tuple[str, str, int]]:
    """Yield the subject, the path and the code of the errors of a response: of a Produce those of partitions, else the
    first one, wherever it is."""
    if event.api == "Produce":
        for topic, partition, path in partitions(event.body, "responses", "partition_responses"):
            yield f"{event.topic(topic)}-{partition['index']}", f"{path}.error_code", partition["error_code"]
    else:
        for path, code in islice(_codes(event.body, ""), 1):
            yield _named(event.request), path, code


def _codes(value: object, path: str) -> Iterator[tuple[str, int]]:
    """Yield the error codes in a body, outermost first, each with its path."""
    if isinstance(value, dict):
        yield from ((f"{path}{name}", value[name]) for name in ERROR_CODES & value.keys() if value[name])
        for name, inner in value.items():
            if isinstance(inner, list):
                for n, each in enumerate(inner):
                    yield from _codes(each, f"{path}{name}[{n}].")

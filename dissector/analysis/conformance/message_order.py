"""What came before in the order of time, for proofs of rules that remember: by columns of messages, `(m,)` each."""

import numpy as np

from dissector.analysis.conformance.message_columns import MessageColumns
from dissector.analysis.conformance.rule import Proof
from dissector.core.arrays import Bool, Int64

NOTHING = -1


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

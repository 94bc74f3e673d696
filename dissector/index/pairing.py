"""Requests and responses of one connection, paired by correlation id.

By id, not by order: brokers answer in order, but a capture need not hold all. Among requests with the same id the
oldest one is answered first. After a loss of what the server sent it is the newest: the others' responses may be in
the loss, so these are passed over, and answered when nobody else waits. A response answers a request only if it began
in a later packet.

Invariants:
  * pairs do not depend on how frames were cut into batches: what has no partner yet waits for one;
  * what waits is bounded: `limits.pending_requests` a side, the oldest leave first, and leave as unpaired.
"""

from bisect import bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64

Losses = Mapping[int, Sequence[int]]
_NONE: Int64 = np.zeros(0, np.int64)


class PendingRequest(NamedTuple):
    """One side's frames without a partner so far, oldest first."""

    key: Int64
    """Connection << 32 | correlation id as unsigned."""
    row: Int64
    packet: Int64

    def plus(self, other: "PendingRequest") -> "PendingRequest":
        return PendingRequest(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))

    def where(self, keep: Bool) -> "PendingRequest":
        return PendingRequest(self.key[keep], self.row[keep], self.packet[keep])


NOBODY = PendingRequest(_NONE, _NONE, _NONE)


def key_of(connection: Int64, correlation_id: Int64) -> Int64:
    """What pairs are made by."""
    return (connection << 32) | (correlation_id & 0xFFFFFFFF)


class Pairing:
    """Holds what waits; each `pair` gives the new pairs."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._requests = NOBODY
        self._responses = NOBODY
        self._losses: dict[int, list[int]] = defaultdict(list)
        """Packets that showed a loss of a connection's responses, ascending."""
        self._passed: set[int] = set()
        """Rows of requests that wait and were passed over."""
        self._order: Int64 | None = None
        """Requests that wait, by key, the oldest of each first; made when somebody asks."""

    def lost(self, connection: Int64, packet: Int64) -> None:
        """Some of what servers sent is not there: told before what came after it is paired."""
        for each, at in zip(connection.tolist(), packet.tolist(), strict=True):
            insort(self._losses[each], at)

    @property
    def responses(self) -> Int64:
        """Rows of responses that wait for their requests."""
        return self._responses.row

    def outstanding(self, connection: int) -> dict[int, int]:
        """Correlation ids that wait for a response on a connection, as signed integers, each with the packet of the
        oldest request that has it."""
        if self._order is None:
            self._order = np.argsort(self._requests.key, kind="stable")
        bounds = [connection << 32, (connection + 1) << 32]
        rows = self._order[slice(*np.searchsorted(self._requests.key, bounds, sorter=self._order))][::-1]
        ids = (self._requests.key[rows] & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
        return dict(zip(ids.tolist(), self._requests.packet[rows].tolist(), strict=True))

    def pair(self, requests: PendingRequest, responses: PendingRequest) -> tuple[Int64, Int64, Int64]:
        """Rows of requests and of the responses to them, `(n,)` each; and rows of responses given up as orphans."""
        self._order = None
        requests, responses = self._requests.plus(requests), self._responses.plus(responses)
        asked, answer = _unique_pairs(requests, responses, self._losses, self._passed)
        loose_requests = np.ones(len(requests.key), np.bool_)
        loose_responses = np.ones(len(responses.key), np.bool_)
        loose_requests[asked] = False
        loose_responses[answer] = False
        self._requests = requests.where(loose_requests)
        self._responses = responses.where(loose_responses)
        orphans = self._responses.row[: -self._most] if len(self._responses.row) > self._most else _NONE
        self._requests = PendingRequest(*(column[-self._most :] for column in self._requests))
        self._responses = PendingRequest(*(column[-self._most :] for column in self._responses))
        self._still_passed()
        return requests.row[asked], responses.row[answer], orphans

    def end(self, connections: Int64) -> Int64:
        """Forget what waits on connections that have ended; return rows of responses without a request."""
        self._order = None
        self._requests = self._requests.where(~np.isin(self._requests.key >> 32, connections))
        over = np.isin(self._responses.key >> 32, connections)
        for connection in connections.tolist() if self._losses else ():
            self._losses.pop(connection, None)
        orphans = self._responses.row[over]
        self._responses = self._responses.where(~over)
        self._still_passed()
        return orphans

    def _still_passed(self) -> None:
        """Forget who waits no more."""
        if self._passed:
            self._passed.intersection_update(self._requests.row.tolist())

    def pending(self, frames: Int64) -> Int64:
        """Rows of frames that wait for a partner; `frames` has that of each request by its row in the index."""
        return np.concatenate([frames[self._requests.row].astype(np.int64), self._responses.row])

    def flush(self) -> Int64:
        """Forget all that waits; return rows of responses without a request."""
        orphans = self._responses.row
        self._requests = self._responses = NOBODY
        self._order = None
        return orphans


def _unique_pairs(
    requests: PendingRequest, responses: PendingRequest, losses: Losses, passed: set[int]
) -> tuple[Int64, Int64]:
    """Positions of partners. Ids that stand once on either side are paired at once, repeated ones in order; `passed`
    gets the rows of requests that are passed over."""
    if not len(requests.key) or not len(responses.key):
        return _NONE, _NONE
    by_key = np.argsort(requests.key, kind="stable")
    keys = requests.key[by_key]
    once = np.ones(len(keys), np.bool_)
    same = keys[1:] == keys[:-1]
    once[1:] &= ~same
    once[:-1] &= ~same
    at = np.minimum(np.searchsorted(keys, responses.key), len(keys) - 1)
    found = keys[at] == responses.key
    _, inverse, counts = np.unique(responses.key, return_inverse=True, return_counts=True)
    simple = found & once[at] & (counts[inverse] == 1)
    asked = by_key[at[simple]]
    answer = np.flatnonzero(simple)
    later = responses.packet[answer] > requests.packet[asked]
    asked, answer = asked[later], answer[later]
    repeated = np.flatnonzero(found & ~simple)
    if len(repeated):
        asking = np.flatnonzero(np.isin(requests.key, responses.key[repeated]))
        more = _in_order(requests, responses, asking, repeated, losses, passed)
        asked, answer = np.concatenate([asked, more[0]]), np.concatenate([answer, more[1]])
    return asked, answer


def _in_order(
    requests: PendingRequest,
    responses: PendingRequest,
    asking: Int64,
    answering: Int64,
    losses: Losses,
    passed: set[int],
) -> tuple[Int64, Int64]:
    """Partners among repeated ids: each response takes the oldest request before it, after a loss the newest."""
    queues: dict[int, deque[int]] = defaultdict(deque)
    behind: dict[int, deque[int]] = defaultdict(deque)
    for position in asking[np.argsort(requests.packet[asking], kind="stable")].tolist():
        queue = behind if int(requests.row[position]) in passed else queues
        queue[int(requests.key[position])].append(position)
    asked: list[int] = []
    answer: list[int] = []
    for position in answering[np.argsort(responses.packet[answering], kind="stable")].tolist():
        key, packet = int(responses.key[position]), responses.packet[position]
        waiting, others = queues[key], behind[key]
        if waiting and _is_between(losses.get(key >> 32, ()), int(requests.packet[waiting[0]]), int(packet)):
            while len(waiting) > 1 and requests.packet[waiting[1]] < packet:
                others.append(waiting.popleft())
        if waiting and requests.packet[waiting[0]] < packet:
            asked.append(waiting.popleft())
            answer.append(position)
        elif others and requests.packet[others[0]] < packet:
            asked.append(others.popleft())
            answer.append(position)
    passed.update(int(requests.row[position]) for others in behind.values() for position in others)
    return np.array(asked, np.int64), np.array(answer, np.int64)


def _is_between(losses: Sequence[int], asked: int, answered: int) -> bool:
    """Whether there was a loss behind the one packet, up to the other."""
    at = bisect_right(losses, asked)
    return at < len(losses) and losses[at] <= answered

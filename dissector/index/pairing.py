"""Requests and responses of a connection, paired by correlation id.

By id, not by order: brokers respond in order, but the capture may not have all. Among requests with the same id the
oldest gets the response. After a loss in the server's direction it is the newest: the responses to the others may be in
the loss, so these are skipped, and get a response when no other request is pending.

A capture may have a response before its request: a network card has several queues, clocks of merged captures differ.
On a connection that is in the capture from its SYN on and without a loss, frames are paired whatever their order. On
others a response belongs to a request only if it begins in a later packet; one that has found no request by the end
takes a request behind it that has found no response, if no other frame that is pending has the id (`early_pairs`).

Invariants:
  * pairs do not depend on how frames were cut into batches: a frame without a partner stays pending;
  * after `give_up` at most `limits.pending_requests` are pending on each side; the oldest are given up first.
"""

from bisect import bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.columns import is_in
from dissector.detection.frame_heuristics import PendingIds

_NONE: Int64 = np.zeros(0, np.int64)


class PendingFrames(NamedTuple):
    """Frames of one side without a partner so far, oldest first."""

    key: Int64
    """Connection << 32 | correlation id as unsigned."""
    row: Int64
    packet: Int64

    def plus(self, other: "PendingFrames") -> "PendingFrames":
        return PendingFrames(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))

    def where(self, keep: Bool) -> "PendingFrames":
        return PendingFrames(self.key[keep], self.row[keep], self.packet[keep])


NONE_PENDING = PendingFrames(_NONE, _NONE, _NONE)


def key_of(connection: Int64, correlation_id: Int64) -> Int64:
    """Return what partners have in common: connection and correlation id."""
    return (connection << 32) | (correlation_id & 0xFFFFFFFF)


class Pairing:
    """Holds pending frames; each `pair` returns the new pairs.

    `is_whole` returns whether a connection is in the capture from its SYN on."""

    def __init__(self, max_pending: int, is_whole: Callable[[int], bool]) -> None:
        self._max_pending = max_pending
        self._is_whole = is_whole
        self._damaged: dict[int, int] = {}
        """The first packet that showed a loss in either direction, by connection."""
        self.early_responses = 0
        """Responses that the capture has before their requests."""
        self._requests = NONE_PENDING
        self._responses = NONE_PENDING
        self._losses: dict[int, list[int]] = defaultdict(list)
        """Packets that showed a loss in the server's direction, by connection, ascending."""
        self._skipped: set[int] = set()
        """Rows of pending requests that were skipped."""
        self._order: Int64 | None = None
        """Pending requests by key, the oldest of each first; sorted when first needed."""

    def lost(self, connection: Int64, packet: Int64, from_client: Bool) -> None:
        """Record losses, before later frames are paired."""
        for each, at, of_client in zip(connection.tolist(), packet.tolist(), from_client.tolist(), strict=True):
            self._damaged[each] = min(at, self._damaged.get(each, at))
            if not of_client:
                insort(self._losses[each], at)

    def _in_any_order(self, connection: int, packet: int) -> bool:
        """Whether frames of a connection up to a packet are paired whatever their order."""
        return self._is_whole(connection) and self._damaged.get(connection, packet + 1) > packet

    @property
    def responses(self) -> Int64:
        """Frames of pending responses."""
        return self._responses.row

    def outstanding(self, connection: int) -> PendingIds:
        """Return the correlation ids of a connection's pending requests."""
        if self._order is None:
            self._order = np.argsort(self._requests.key, kind="stable")
        bounds = [connection << 32, (connection + 1) << 32]
        rows = self._order[slice(*np.searchsorted(self._requests.key, bounds, sorter=self._order))][::-1]
        ids = (self._requests.key[rows] & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
        packets = dict(zip(ids.tolist(), self._requests.packet[rows].tolist(), strict=True))
        return PendingIds(packets, len(packets) == len(ids))

    def pair(self, requests: PendingFrames, responses: PendingFrames) -> tuple[Int64, Int64]:
        """Return rows of requests and frames of their responses, `(n,)` each."""
        self._order = None
        requests, responses = self._requests.plus(requests), self._responses.plus(responses)
        paired_requests, paired_responses = self._unique_pairs(requests, responses)
        early = responses.packet[paired_responses] < requests.packet[paired_requests]
        self.early_responses += int(early.sum())
        self._requests, self._responses = requests, responses
        self._remove(paired_requests, paired_responses)
        return requests.row[paired_requests], responses.row[paired_responses]

    def _unique_pairs(self, requests: PendingFrames, responses: PendingFrames) -> tuple[Int64, Int64]:
        """Positions of partners. Ids that are unique on both sides are paired in columns, repeated ones in order."""
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
        paired_requests = by_key[at[simple]]
        paired_responses = np.flatnonzero(simple)
        ordered = responses.packet[paired_responses] > requests.packet[paired_requests]
        for early in np.flatnonzero(~ordered).tolist():
            request = paired_requests[early]
            ordered[early] = self._in_any_order(int(requests.key[request]) >> 32, int(requests.packet[request]))
        paired_requests, paired_responses = paired_requests[ordered], paired_responses[ordered]
        repeated = np.flatnonzero(found & ~simple)
        if len(repeated):
            repeated_requests = np.flatnonzero(is_in(requests.key, responses.key[repeated]))
            more = self._in_order(requests, responses, repeated_requests, repeated)
            paired_requests, paired_responses = (
                np.concatenate([paired_requests, more[0]]),
                np.concatenate([paired_responses, more[1]]),
            )
        return paired_requests, paired_responses

    def _in_order(
        self, requests: PendingFrames, responses: PendingFrames, repeated_requests: Int64, repeated_responses: Int64
    ) -> tuple[Int64, Int64]:
        """Partners among repeated ids: each response takes the oldest request before it, after a loss the newest."""
        losses, skipped = self._losses, self._skipped
        queues: dict[int, deque[int]] = defaultdict(deque)
        behind: dict[int, deque[int]] = defaultdict(deque)
        for position in repeated_requests[np.argsort(requests.packet[repeated_requests], kind="stable")].tolist():
            queue = behind if int(requests.row[position]) in skipped else queues
            queue[int(requests.key[position])].append(position)
        paired_requests: list[int] = []
        paired_responses: list[int] = []
        for position in repeated_responses[np.argsort(responses.packet[repeated_responses], kind="stable")].tolist():
            key, packet = int(responses.key[position]), responses.packet[position]
            pending, others = queues[key], behind[key]
            if pending and _has_loss_between(losses.get(key >> 32, ()), int(requests.packet[pending[0]]), int(packet)):
                while len(pending) > 1 and requests.packet[pending[1]] < packet:
                    others.append(pending.popleft())
            if pending and (
                requests.packet[pending[0]] < packet or self._in_any_order(key >> 32, int(requests.packet[pending[0]]))
            ):
                paired_requests.append(pending.popleft())
                paired_responses.append(position)
            elif others and requests.packet[others[0]] < packet:
                paired_requests.append(others.popleft())
                paired_responses.append(position)
        skipped.update(int(requests.row[position]) for others in behind.values() for position in others)
        return np.array(paired_requests, np.int64), np.array(paired_responses, np.int64)

    def early_pairs(self, connections: Int64 | None = None) -> tuple[Int64, Int64, Int64]:
        """Return keys, rows of requests and frames of responses in packets before them, on these connections or on all.

        Only ids that are pending once on each side are paired. They stay pending until `remove`."""
        requests = np.flatnonzero(_once(self._requests.key, connections))
        responses = np.flatnonzero(_once(self._responses.key, connections))
        keys, of_requests, of_responses = np.intersect1d(
            self._requests.key[requests], self._responses.key[responses], assume_unique=True, return_indices=True
        )
        requests, responses = requests[of_requests], responses[of_responses]
        early = self._responses.packet[responses] < self._requests.packet[requests]
        return keys[early], self._requests.row[requests[early]], self._responses.row[responses[early]]

    def remove(self, rows: Int64, frames: Int64) -> None:
        """Forget requests, by their rows, and responses before them, by their frames: they are paired."""
        self._order = None
        self.early_responses += len(rows)
        self._remove(
            np.flatnonzero(np.isin(self._requests.row, rows)), np.flatnonzero(np.isin(self._responses.row, frames))
        )

    def _remove(self, paired_requests: Int64, paired_responses: Int64) -> None:
        unpaired_requests = np.ones(len(self._requests.key), np.bool_)
        unpaired_responses = np.ones(len(self._responses.key), np.bool_)
        unpaired_requests[paired_requests] = False
        unpaired_responses[paired_responses] = False
        self._requests = self._requests.where(unpaired_requests)
        self._responses = self._responses.where(unpaired_responses)
        self._forget_skipped()

    @property
    def is_full(self) -> bool:
        """Whether more is pending than may be."""
        return max(len(self._requests.row), len(self._responses.row)) > self._max_pending

    def give_up(self) -> Int64:
        """Forget the oldest frames above the limit; return frames of responses without a request."""
        orphans = self._responses.row[: -self._max_pending] if len(self._responses.row) > self._max_pending else _NONE
        self._order = None
        self._requests = PendingFrames(*(column[-self._max_pending :] for column in self._requests))
        self._responses = PendingFrames(*(column[-self._max_pending :] for column in self._responses))
        self._forget_skipped()
        return orphans

    def end(self, connections: Int64) -> Int64:
        """Forget what waits on connections that have ended; return rows of responses without a request."""
        self._order = None
        self._requests = self._requests.where(~np.isin(self._requests.key >> 32, connections))
        ended = np.isin(self._responses.key >> 32, connections)
        for connection in connections.tolist() if self._damaged else ():
            self._losses.pop(connection, None)
            self._damaged.pop(connection, None)
        orphans = self._responses.row[ended]
        self._responses = self._responses.where(~ended)
        self._forget_skipped()
        return orphans

    def _forget_skipped(self) -> None:
        """Forget skipped requests that are not pending any more."""
        if self._skipped:
            self._skipped.intersection_update(self._requests.row.tolist())

    def pending(self, frames: Int64) -> Int64:
        """Rows of frames that wait for a partner; `frames` has that of each request by its row in the index."""
        requests: Int64 = frames[self._requests.row].astype(np.int64)
        return np.concatenate([requests, self._responses.row])

    def flush(self) -> Int64:
        """Forget all that waits; return rows of responses without a request."""
        orphans = self._responses.row
        self._requests = self._responses = NONE_PENDING
        self._order = None
        return orphans


def _once(keys: Int64, connections: Int64 | None) -> Bool:
    """Return which keys occur once, of these connections or of all."""
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    once: Bool = counts[inverse] == 1
    return once if connections is None else once & np.isin(keys >> 32, connections)


def _has_loss_between(losses: Sequence[int], request: int, response: int) -> bool:
    """Whether there was a loss behind the request's packet, up to the response's."""
    at = bisect_right(losses, request)
    return at < len(losses) and losses[at] <= response

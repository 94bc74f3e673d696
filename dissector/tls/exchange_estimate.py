"""About how many requests and responses went by on connections that stay encrypted: by records, as sizes and times are
in clear.

Programs encrypt each message by itself, so the rule is: each record of the server answers an earlier one of the client
that has no answer yet. Of 134 connections of thirteen recordings it is right for 107, and gives 704 exchanges for 695;
of a client with many requests in flight 361 for 361. Counting records of the client counts a large Produce several
times, and counting changes of direction finds 280 of the 361.
"""

from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.store import Store
from dissector.tls.record_parts import APPLICATION_DATA, CHANGE_CIPHER_SPEC, HEADER

LEAST_FRAGMENT: Final = 36
"""Of a record with a message in TLS 1.3, where alerts look like messages: the JDK's close_notify has 35 bytes."""


class ExchangeEstimate:
    """The records of one connection."""

    def __init__(self) -> None:
        self.exchanges = 0
        """Records of the server that answer one of the client."""
        self._unanswered = 0
        self._is_first = True

    def add(self, is_client: Bool, records: Int64, *, has_encrypted_finished: bool) -> None:
        """Take note of records in the order of packets: a number of them each time, and which side sent them, `(n,)`.
        In TLS 1.3 the client's first one is its Finished."""
        of_client = is_client & (records > 0)
        if self._is_first and has_encrypted_finished and of_client.any():
            records = records.copy()
            records[of_client.argmax()] -= 1
        self._is_first &= not of_client.any()
        steps = np.repeat(np.where(is_client, 1, -1), records)
        level = self._unanswered + np.cumsum(steps)
        without_request = max(0, -int(level.min(initial=0)))
        self.exchanges += int((steps < 0).sum()) - without_request
        self._unanswered += int(steps.sum()) + without_request


def records_of_runs(store: Store, address: Int64, size: Int64, least: Int64) -> Int64:
    """Return how many records with application data begin in runs that begin with a record, `(n,)`: those with `least`
    bytes and more, by run."""
    heads = np.zeros((len(size), HEADER), np.int64)
    is_whole = size >= HEADER
    heads[is_whole] = store.gather(address[is_whole], HEADER)
    is_record = (heads[:, 0] >= CHANGE_CIPHER_SPEC) & (heads[:, 0] <= APPLICATION_DATA) & (heads[:, 1] == 3)
    fragment = heads[:, 3] << 8 | heads[:, 4]
    is_data = is_record & (heads[:, 0] == APPLICATION_DATA) & (fragment >= least)
    found: Int64 = is_data.astype(np.int64)
    for row in np.flatnonzero(is_record & (size > HEADER + fragment)).tolist():
        found[row] = _records_in(store.read(int(address[row]), int(size[row])), int(least[row]))
    return found


def _records_in(data: memoryview, least: int) -> int:
    at = found = 0
    while at + HEADER <= len(data) and data[at + 1] == 3:
        fragment = data[at + 3] << 8 | data[at + 4]
        found += data[at] == APPLICATION_DATA and fragment >= least
        at += HEADER + fragment
    return found

"""Messages that are the same to the byte, but for the correlation id: what is read in one need not be read in others.

Invariant: messages that count as equal are whole, and of one API and version. One whose frame has no number
(`equal_numbers`) is equal to no other.
"""

import numpy as np

from dissector.core.arrays import Int64
from dissector.index.exchange_table import ExchangeTable
from dissector.index.frame_table import NO_NUMBER, FrameTable, equal_numbers
from dissector.protocol.kernel.shredding import numbered_rows
from dissector.protocol.message_layout import REQUEST_ID, RESPONSE_ID


def first_equal(table: ExchangeTable, frames: FrameTable, rows: Int64, *, is_request: bool) -> Int64:
    """By row, `(n,)`, the place in `rows` of the first one that has the same message. All rows have a request, or all
    have a response to one."""
    if is_request:
        numbers = equal_numbers(frames, table.request.values[rows], REQUEST_ID.stop, head=REQUEST_ID.start)
    else:
        numbers = equal_numbers(frames, table.response.values[rows], RESPONSE_ID.stop)
    version = table.version.values[rows].astype(np.int64) & 0xFFFF
    kinds = (table.api_key.values[rows].astype(np.int64) & 0xFFFF) << 16 | version
    which, firsts = numbered_rows(np.where(numbers == NO_NUMBER, -1 - np.arange(len(rows)), numbers << 32 | kinds))
    return firsts.astype(np.int64)[which]

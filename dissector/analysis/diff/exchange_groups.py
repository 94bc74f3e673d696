"""Groups of exchanges whose requests have equal contents, and so do their responses: what follows from these is found
once a group."""

from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.diff.message_contents import UNNUMBERED
from dissector.core.arrays import Bool, Int64
from dissector.index.index_columns import IndexColumns

NO_RESPONSE: Final = -1
"""In place of the number of a response's content."""


class NumberedExchanges(NamedTuple):
    """Exchanges, `(n,)`, with numbers for what they contain."""

    rows: Int64
    found: IndexColumns
    requests: Int64
    """The numbers of contents, as in `MessageContents`: `UNNUMBERED` where a message needs a careful look."""
    responses: Int64
    """The same, or `NO_RESPONSE`."""
    matched: Int64
    """The numbers of the user's manual matches of connections; 0 for none."""


class ExchangeGroup(NamedTuple):
    """The first exchange of a group, and how many there are."""

    row: int
    connection: int
    api_key: int
    version: int
    request: int
    response: int
    matched: int
    size: int


def group_exchanges(exchanges: NumberedExchanges, alone: Bool) -> tuple[list[ExchangeGroup], Int64]:
    """Return groups in the order of their first rows, and the number of each exchange's group. One that is `alone`, or
    has a message without a number, is a group of its own."""
    rows, found, requests, responses, matched = exchanges
    _, pairs = np.unique(requests << 32 | (responses - NO_RESPONSE), return_inverse=True)
    numbers = pairs * (int(matched.max()) + 1) + matched
    single = np.flatnonzero(alone | (requests == UNNUMBERED) | (responses == UNNUMBERED))
    numbers[single] = -1 - single
    _, first, group, size = np.unique(numbers, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    columns = (rows, found.connection, found.api_key, found.version, requests, responses, matched)
    groups = zip(*(column[first[order]].tolist() for column in columns), size[order].tolist(), strict=True)
    return [ExchangeGroup(*each) for each in groups], rank[group]

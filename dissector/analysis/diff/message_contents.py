"""What messages contain for a comparison: of all that are equal there one is decoded; and groups of exchanges whose
requests have equal contents, and so do their responses: what follows from these is found once a group.

Messages are numbered by the fields that their leaves are made of (`FieldKeys`): all of the body, but of positions only
whether they are negative, of produced records what the headers of batches show, and of other records nothing.

Invariants: the content of a message is what decoding it gives (a property test); what is kept is bounded.
"""

from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.diff.compared_values import is_position
from dissector.analysis.diff.matching_keys import Subject, first_error, retried_step, subject_of
from dissector.analysis.diff.message_leaves import INTEGERS, Leaf, message_leaves
from dissector.capture_session import Capture
from dissector.core.arrays import Bool, Int64
from dissector.index.index_columns import IndexColumns
from dissector.protocol.codec.program import ColumnPlan, Part
from dissector.protocol.schema.api_keys import ApiKey

BODY: Final = "body"
RECORDS: Final = "records"
MOST_LEAVES: Final = 1 << 18
"""Of the contents of one side's requests, or responses, that are kept."""
UNNUMBERED: Final = 0
"""The number of messages that need a careful look."""


class MessageContent(NamedTuple):
    """What one message contains."""

    leaves: list[Leaf]
    subject: Subject
    """Of a request, what it is for."""
    error: int
    """Of a response, its first error code; 0 for none."""
    retried: str
    """Of a request, the step that it belongs to if it is tried again (`retried_step`)."""


class ContentNumbers(NamedTuple):
    """The numbers of the contents of exchanges, `(n,)`; `UNNUMBERED` where a message needs a careful look."""

    requests: Int64
    responses: Int64


class MessageContents:
    """Of the requests of one side of a comparison, or of its responses."""

    def __init__(self, capture: Capture, *, is_request: bool) -> None:
        self._capture = capture
        self._is_request = is_request
        self.part = "request" if is_request else "response"
        self._numbers = capture.messages.field_keys(
            _is_compared, is_request=is_request, outlines=_is_outlined,
            in_columns=not is_request,  # the metadata log masks records, and leaves have none of a response's
        )  # fmt: skip
        self._known: dict[int, MessageContent] = {}
        self._leaves = 0

    def numbers(self, rows: Int64) -> Int64:
        """Return the numbers of contents of rows, `(n,)`; `UNNUMBERED` where there is no message, too."""
        return self._numbers(rows, None)

    def of(self, number: int, row: int) -> MessageContent:
        """Return the content of the message with that number in a row."""
        content = self._known.get(number)
        if content is None:
            content = self._read(row)
            self._leaves += len(content.leaves)
            if self._leaves > MOST_LEAVES:
                self._known.clear()
                self._leaves = len(content.leaves)
            if number != UNNUMBERED:
                self._known[number] = content
        return content

    def _read(self, row: int) -> MessageContent:
        exchange = self._capture.exchange_for_now(row)
        message = exchange.request if self._is_request else exchange.response
        assert message is not None
        api, version = exchange.fields.api, message.layout.body_version
        subject = subject_of(api, version, message.body) if self._is_request else ()
        error = 0 if self._is_request else first_error(message)
        retried = retried_step(api, version, message.body) if self._is_request else ""
        return MessageContent(message_leaves(message), subject, error, retried)


def content_numbers(requests: MessageContents, responses: MessageContents, rows: Int64) -> ContentNumbers:
    """Number the contents of exchanges. A response is read in the light of its request: that of a request which needs a
    careful look needs one, too."""
    numbers = requests.numbers(rows)
    return ContentNumbers(numbers, np.where(numbers == UNNUMBERED, UNNUMBERED, responses.numbers(rows)))


def _is_compared(api_key: int, column: ColumnPlan) -> bool:
    """Whether leaves of an API's messages depend on all of a column."""
    is_field = column.path[0] == BODY and column.part is not Part.UNKNOWN_TAGS and column.type != RECORDS
    return is_field and not _is_outlined(api_key, column)


def _is_outlined(api_key: int, column: ColumnPlan) -> bool:
    """Whether leaves of an API's messages depend on a column only so far as its outline shows."""
    if column.path[0] != BODY or column.part is not Part.VALUE:
        return False
    if column.type == RECORDS:
        return api_key == ApiKey.PRODUCE
    return column.type in INTEGERS and is_position(column.name)


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

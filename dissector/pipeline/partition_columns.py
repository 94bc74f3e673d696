"""Rows of the table `partitions` by columns, of the APIs that have nearly all of them.

Invariant: the rows are those that `partition_cells` makes of the same bodies as JSON (a test over all captures). An
exchange with names that JSON would escape, or that names a partition twice in a message, is left to it.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from dissector.bulk.body_fields import NO_TEXT, OfBodies
from dissector.bulk.body_partitions import OfPartitions
from dissector.capture_session import Capture, PackedRows
from dissector.core.arrays import Bool, Int64
from dissector.core.columns import ValueNumbers
from dissector.pipeline.carried_columns import Columns
from dissector.pipeline.partition_cells import LISTS, RECEIVED_OFFSETS, SENT_OFFSETS
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.errors import error_name

APIS: Final = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT)
"""Keys of the APIs: their exchanges have no rows in other tables that are made of JSON."""
PARTITIONS: Final = "partitions"
_RECORDS: Final = "records"
_LEADER_EPOCHS: Final = ("leader_epoch", "committed_leader_epoch")
_RECEIVED: Final = ("high_watermark", "last_stable_offset", "log_start_offset")
_SENT_FIELDS: Final = (*SENT_OFFSETS, _RECORDS)
_RECEIVED_FIELDS: Final = (*RECEIVED_OFFSETS, *_RECEIVED, "leader_id", *_LEADER_EPOCHS, _RECORDS, "error_code")
_ALONE: Final = ("group_id", "transactional_id")
_NONE: Final = -1
_OF_EXCHANGES: Final = ("acks", "isolation_level")
"""Columns of `exchanges` that this table has, too."""


class PartitionRows(NamedTuple):
    """Rows of the table, without the columns that tables share."""

    row: Int64
    """The place of the exchange of each."""
    columns: Columns
    is_known: Bool
    """Of which exchanges these are all rows."""


def partition_rows(capture: Capture, whole: PackedRows, exchanges: Columns) -> PartitionRows:
    """Return the rows of some exchanges, given with their columns of the table `exchanges`."""
    texts = ValueNumbers[str]()
    lists = [{int(api): names for api in APIS if all(names := LISTS[api][side])} for side in (0, 1)]
    read, rows = whole.messages.partitions, whole.rows
    sent = read(rows, lists[0], _SENT_FIELDS, _ALONE, texts, is_request=True)
    received = read(rows, lists[1], _RECEIVED_FIELDS, (), texts, is_request=False)
    is_plain = np.array([bool(text) and text.isascii() and text.isprintable() for text in texts.values], np.bool_)
    is_known = sent.is_read & (received.is_read | (capture.index.numbers(rows).response_size < 0))
    for side in (sent, received):
        is_known[side.row[~_chosen_of(is_plain, side.topic, default=False)]] = False
    for numbers in sent.texts.values():
        is_known &= _chosen_of(is_plain, numbers, default=True)
    pairs = _paired(sent, received)
    is_known[pairs.twice] = False
    pairs = pairs.of(is_known)
    of_row = {name: exchanges[name].take(pairs.row) for name in _OF_EXCHANGES}
    words = pa.array([text if plain else "" for text, plain in zip(texts.values, is_plain, strict=True)], pa.string())
    of_text = {name: _taken(words, numbers[pairs.row]) for name, numbers in sent.texts.items()}
    return PartitionRows(pairs.row, of_row | of_text | _cells(sent, received, pairs, words), is_known)


class _Pairs(NamedTuple):
    """Partitions that a request names and its response answers, or either alone, in the order of the rows."""

    row: Int64
    sent: Int64
    """The place among those that are sent; `_NONE` for none."""
    received: Int64
    """The same of those that are received."""
    twice: Int64
    """Rows with a message that names a partition twice."""

    def of(self, is_known: Bool) -> "_Pairs":
        """Return those of some rows."""
        chosen = is_known[self.row]
        return _Pairs(self.row[chosen], self.sent[chosen], self.received[chosen], self.twice)


def _paired(sent: OfPartitions, received: OfPartitions) -> _Pairs:
    counts = len(sent.row), len(received.row)
    row, topic, partition = (np.concatenate(each) for each in zip(sent[:3], received[:3], strict=True))
    place = np.concatenate([np.arange(each) for each in counts])
    is_received = np.repeat(np.array([False, True]), counts)
    order = np.lexsort((is_received, partition, topic, row))  # stable: equal ones stay in their order
    keys: Int64 = np.stack([row, topic, partition])[:, order]
    is_new = np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))[: len(order)]
    first = np.flatnonzero(is_new)
    size = np.diff(np.append(first, len(order)))
    begins = is_received[order[first]]
    is_pair = (size == 2) & ~begins & is_received[order[np.minimum(first + 1, len(order) - 1)]]
    asked = np.where(begins, _NONE, place[order[first]])
    answered = np.where(begins, place[order[first]], _NONE)
    answered[is_pair] = place[order[first[is_pair] + 1]]
    of = row[order[first]]
    lines = np.lexsort((np.where(begins, answered, asked), begins, of))
    return _Pairs(of[lines], asked[lines], answered[lines], of[(size > 1) & ~is_pair])


def _cells(sent: OfPartitions, received: OfPartitions, pairs: _Pairs, words: pa.Array) -> Columns:
    """Return the columns that say what is sent and received about each partition."""
    asked = {name: _at(numbers, pairs.sent) for name, numbers in sent.numbers.items()}
    answered = {name: _at(numbers, pairs.received) for name, numbers in received.numbers.items()}
    is_sent = pairs.sent != _NONE
    topic = np.where(is_sent, _taken_of(sent.topic, pairs.sent), _taken_of(received.topic, pairs.received))
    number = np.where(is_sent, _taken_of(sent.partition, pairs.sent), _taken_of(received.partition, pairs.received))
    offset = _first_of([*(asked[name] for name in SENT_OFFSETS), *(answered[name] for name in RECEIVED_OFFSETS)])
    size = _first_of([_not_negative(asked[_RECORDS]), _not_negative(answered[_RECORDS])])
    return {
        "topic": _taken(words, topic), "partition": pa.array(number, pa.int32()),
        "offset": _array(offset, pa.int64()), **{name: _array(answered[name], pa.int64()) for name in _RECEIVED},
        "leader": _array(answered["leader_id"], pa.int32()),
        "leader_epoch": _array(_first_of([answered[name] for name in _LEADER_EPOCHS]), pa.int32()),
        "records_size": _array(size, pa.int64()), "error": _error_names(answered["error_code"]),
    }  # fmt: skip


def _at(numbers: OfBodies, places: Int64) -> OfBodies:
    """Return the numbers at some places; they are not there at `_NONE`."""
    is_there = _taken_of(numbers.is_there.astype(np.int64), places) != 0
    return OfBodies(_taken_of(numbers.values, places), is_there & (places != _NONE))


def _taken_of(values: Int64, places: Int64) -> Int64:
    """Return values at some places; whatever it is at `_NONE`."""
    return values[places] if len(values) else np.zeros(len(places), np.int64)


def _first_of(choices: Sequence[OfBodies]) -> OfBodies:
    """Return of each partition the first number that is there."""
    values, is_there = choices[0]
    for each in choices[1:]:
        values, is_there = np.where(is_there, values, each.values), is_there | each.is_there
    return OfBodies(values, is_there)


def _not_negative(numbers: OfBodies) -> OfBodies:
    return numbers._replace(is_there=numbers.is_there & (numbers.values >= 0))


def _array(numbers: OfBodies, kind: pa.DataType) -> pa.Array:
    return pa.array(numbers.values, kind, mask=~numbers.is_there)


def _error_names(codes: OfBodies) -> pa.Array:
    distinct, which = np.unique(np.where(codes.is_there, codes.values, 0), return_inverse=True)
    return pa.array([error_name(code) if code else None for code in distinct.tolist()], pa.string()).take(which)


def _taken(words: pa.Array, numbers: Int64) -> pa.Array:
    """Return texts by their numbers; null for `NO_TEXT`."""
    return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32(), mask=numbers == NO_TEXT), words)


def _chosen_of(is_plain: Bool, numbers: Int64, *, default: bool) -> Bool:
    """Return whether texts are plain, by their numbers; the default for `NO_TEXT`."""
    found: Bool = np.append(is_plain, default)[numbers]
    return found

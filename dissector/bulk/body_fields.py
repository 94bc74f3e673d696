"""Fields in bodies of many messages at once: numbers and texts that stand alone, such as `acks` or `group_id`, and
elements of lists, such as the `assignments` of a SyncGroup request.

Invariant: a field is the one that the decoded body has, or is not there: the message needs a careful look, or has no
such field. A text that is null is not there either.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Self

import numpy as np

from dissector.bulk.body_columns import BodyColumns, Messages
from dissector.bulk.record_columns import topics
from dissector.core.arrays import Bool, Int64
from dissector.core.columns import ValueNumbers
from dissector.protocol.codec.json_program import is_value
from dissector.protocol.kernel.shredding import Arena, Shredded
from dissector.protocol.message_layout import PREFIX

NO_TEXT: Final = -1
_BODY: Final = "body"
_INTEGERS: Final = ("int8", "int16", "int32", "int64")


class OfBodies(NamedTuple):
    """A number of some messages, `(n,)`."""

    values: Int64
    is_there: Bool

    @classmethod
    def none(cls, count: int) -> Self:
        return cls(np.zeros(count, np.int64), np.zeros(count, np.bool_))


class ElementNames(NamedTuple):
    """Where elements are in a body, and what is read of them."""

    array: str
    text: str
    """A field that is text."""
    data: str
    """A field that has bytes."""


class OfElements(NamedTuple):
    """Elements, `(n,)`, in the order in which bodies have them."""

    row: Int64
    """The place of its message among those that were asked for."""
    text: Int64
    """The number of its text; `NO_TEXT` for null."""
    size: Int64
    """How many bytes it has; -1 for null."""


class BodyFields:
    """Of the messages of one capture: of the requests of rows of the index, ascending, or of their responses."""

    def __init__(self, bodies: BodyColumns) -> None:
        self._bodies = bodies

    def numbers(self, rows: Int64, names: Sequence[str], *, is_request: bool) -> dict[str, OfBodies]:
        """The numbers with these names, in structures with dots: `replica_state.replica_id`."""
        found = {name: OfBodies.none(len(rows)) for name in names}
        paths = {(_BODY, *name.split(".")): numbers for name, numbers in found.items()}
        for messages, part, columns in self._parts(rows, paths, *_INTEGERS, is_request=is_request):
            for path, column in columns.items():
                values, _, in_row = part.column(column)
                at = messages.at[part.first + in_row.astype(np.int64)]
                paths[path].values[at], paths[path].is_there[at] = values, True
        return found

    def texts(
        self, rows: Int64, names: Sequence[str], texts: ValueNumbers[str], *, is_request: bool
    ) -> dict[str, Int64]:  # fmt: skip
        """The numbers of the texts with these names, `(n,)` each: `NO_TEXT` where there is none. `texts` numbers
        them."""
        found = {name: np.full(len(rows), NO_TEXT) for name in names}
        paths = {(_BODY, *name.split(".")): numbers for name, numbers in found.items()}
        for messages, part, columns in self._parts(rows, paths, "string", is_request=is_request):
            for path, column in columns.items():
                at = messages.at[part.first + part.column(column).rows.astype(np.int64)]
                paths[path][at] = texts_of(part, messages, column, {}, texts)
        return found

    def elements(self, rows: Int64, names: ElementNames, texts: ValueNumbers[str], *, is_request: bool) -> OfElements:
        """The elements of a list. `texts` numbers texts."""
        text, data = ((_BODY, names.array, name) for name in (names.text, names.data))
        found: list[Int64] = [np.zeros((len(OfElements._fields), 0), np.int64)]
        for messages, part, columns in self._parts(rows, (text, data), "string", "bytes", is_request=is_request):
            if text not in columns or data not in columns:
                continue
            in_row = part.column(columns[text]).rows.astype(np.int64)
            numbers = texts_of(part, messages, columns[text], {}, texts)
            elements = np.stack([messages.at[part.first + in_row], numbers, part.column(columns[data]).values])
            found.append(elements[:, part.errors[in_row] == 0])
        return OfElements(*np.concatenate(found, axis=1))

    def _parts(
        self, rows: Int64, paths: Collection[tuple[str, ...]], *kinds: str,
        is_request: bool,
    ) -> Iterator[tuple[Messages, Shredded, dict[tuple[str, ...], int]]]:  # fmt: skip
        """Yield messages of one layout, a part of them that was read, and the columns of those paths that it has."""
        arena = Arena()  # for this call: what it grew to would stay
        for messages in self._bodies.messages(rows, is_request=is_request, in_columns=True):
            columns = {
                each.path: number for number, each in enumerate(messages.program.columns)
                if each.path in paths and is_value(each, *kinds)
            }  # fmt: skip
            if columns:
                wanted = messages.program.wanted(values=columns.values())
                for part in arena.shred(messages.frames, messages.program, wanted, PREFIX):
                    yield messages, part, columns


def texts_of(
    part: Shredded, messages: Messages, column: int, names: Mapping[str, str], texts: ValueNumbers[str]
) -> Int64:
    """Return the numbers of a column's texts, `NO_TEXT` where they are null; of ids those of the `names` that they
    stand for, where these are known."""
    sizes = part.column(column).values
    are_ids = messages.program.columns[column].type == "uuid"
    if not are_ids and (sizes < 0).all():
        return np.full(len(sizes), NO_TEXT)
    is_null = np.zeros(len(sizes), np.bool_) if are_ids else sizes < 0
    which, found = topics(part, column, messages.frames.addresses, names, are_ids=are_ids)
    numbers = np.array([texts.of(each) for each in found], np.int64)[which]
    return np.where(is_null, NO_TEXT, numbers)

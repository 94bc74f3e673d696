"""The shapes of messages: where each field stands in its frame, whatever its value. One message of a shape is traced.

Invariant: plain messages (`BodyColumns`) of equal shape have equal fields at equal places, of equal sizes. A message
that needs a careful look has no shape.
"""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

import numpy as np

from dissector.bulk.body_columns import BodyColumns
from dissector.core.arrays import Bool, Int64
from dissector.protocol.codec.plan import SCALARS
from dissector.protocol.codec.program import Part, Program
from dissector.protocol.kernel.shredding import Arena, Shredded
from dissector.protocol.message_layout import PREFIX, MessageLayout

Traced = TypeVar("Traced")
_FIXED: Final = frozenset(SCALARS)


class MessageShapes(Generic[Traced]):
    """Of one capture; `trace` finds, in a frame of some layout, what depends on its shape alone."""

    def __init__(self, bodies: BodyColumns, trace: Callable[[MessageLayout, bytes], Traced]) -> None:
        self._bodies = bodies
        self._trace = trace
        self._arena = Arena()
        self._programs: list[Program] = []
        """So that no other program gets the id of one of them."""
        self._known: dict[tuple[int, int, bytes], Traced] = {}
        """By program, size and what is not of a fixed size."""

    def traced(self, rows: Int64, *, is_request: bool) -> list[Traced | None]:
        """What is traced in the requests of rows, or in their responses; None for those without a shape."""
        found: list[Traced | None] = [None] * len(rows)
        for messages in self._bodies.messages(rows, is_request=is_request):
            program = messages.program
            if all(program is not each for each in self._programs):
                self._programs.append(program)
            columns = [number for number, column in enumerate(program.columns) if column.type not in _FIXED]
            unknown = [number for number in columns if program.columns[number].part is Part.UNKNOWN_TAGS]
            for part in self._arena.shred(messages.frames, program, program.wanted(values=columns), PREFIX):
                fits = part.errors == 0
                for number in unknown:
                    tags = part.column(number)
                    fits[tags.rows[tags.values > 0]] = False
                at = messages.at[part.first : part.stop].tolist()
                sizes = messages.frames.sizes[part.first : part.stop].tolist()
                which = np.flatnonzero(fits).tolist()
                for row, shape in zip(which, _shapes(part, columns, fits), strict=True):
                    key = id(program), sizes[row], shape
                    known = self._known.get(key)
                    if known is None:
                        data = messages.frames.data(part.first + row)
                        known = self._known[key] = self._trace(messages.layout, data)
                    found[at[row]] = known
        return found


def _shapes(part: Shredded, columns: list[int], chosen: Bool) -> list[bytes]:
    """What each of the chosen rows has in some columns, with its place."""
    found = [part.column(number) for number in columns]
    lengths = [len(each.rows) for each in found]
    rows = np.concatenate([np.zeros(0, np.int64), *(each.rows for each in found)])
    order = np.argsort(rows, kind="stable")
    values = np.stack((
        np.repeat(np.array(columns, np.int64), lengths),
        np.concatenate([np.zeros(0, np.int64), *(each.values for each in found)]),
        np.concatenate([np.zeros(0, np.int64), *(each.positions for each in found)]),
    ), axis=1)[order]  # fmt: skip
    edges = np.searchsorted(rows[order], np.arange(part.stop - part.first + 1)).tolist()
    data, width = values.tobytes(), values.shape[1] * values.itemsize
    return [data[edges[row] * width : edges[row + 1] * width] for row in np.flatnonzero(chosen).tolist()]

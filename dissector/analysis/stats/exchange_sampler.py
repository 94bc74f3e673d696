"""Draw a uniform sample of the exchanges of each API and version, in one pass.

Every row gets a random number, and the rows with the smallest numbers are the sample: so each row is equally likely,
however many there are. The seed is fixed: a capture has the same sample each time.
"""

from typing import Final

import numpy as np

from dissector.analysis.stats.field_bytes import FieldBytes, MessageKind
from dissector.core.arrays import Int64
from dissector.index.index_columns import IndexColumns

SAMPLE_SIZE: Final = 200
"""At most so many exchanges of an API and version."""
_SEED: Final = 20261121


class ExchangeSampler:
    """The sample so far."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(_SEED)
        self._kept: dict[int, tuple[Int64, Int64]] = {}
        """By group: random numbers, ascending, and their rows."""

    def rows(self) -> Int64:
        """Return the rows of the sample, ascending."""
        return np.sort(np.concatenate([np.zeros(0, np.int64), *(rows for _, rows in self._kept.values())]))

    def add(self, rows: Int64, groups: Int64, found: IndexColumns, fields: FieldBytes) -> None:
        """Add rows; `groups` numbers the API and version of each. Messages and bytes of all are counted in `fields`.
        Responses without a request have no API, and are left out."""
        has_api = found.api_key >= 0
        rows, groups, found = rows[has_api], groups[has_api], found.where(has_api)
        if not len(rows):
            return
        numbers = self._random.integers(0, 1 << 62, len(rows))
        order = np.lexsort((numbers, groups))
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
            which = order[start:stop]
            group = int(groups[which[0]])
            self._keep(group, numbers[which[:SAMPLE_SIZE]], rows[which[:SAMPLE_SIZE]])
            key, version = int(found.api_key[which[0]]), int(found.version[which[0]])
            for side, sizes in (("request", found.request_size[which]), ("response", found.response_size[which])):
                present = sizes >= 0
                if present.any():
                    sample = fields.of(MessageKind(key, version, side))
                    sample.messages += int(present.sum())
                    sample.bytes += int(sizes[present].sum())

    def _keep(self, group: int, numbers: Int64, rows: Int64) -> None:
        kept = self._kept.get(group)
        if kept is not None:
            numbers, rows = np.concatenate((kept[0], numbers)), np.concatenate((kept[1], rows))
        order = np.argsort(numbers, kind="stable")[:SAMPLE_SIZE]
        self._kept[group] = numbers[order], rows[order]

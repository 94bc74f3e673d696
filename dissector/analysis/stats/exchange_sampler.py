"""Which exchanges' fields are measured: of each API and version a fair sample, drawn in one pass.

Every row gets a number by chance, and the rows with the least numbers stay: so each is as likely as any other, however
many come. The same capture has the same sample each time.
"""

from typing import Final

import numpy as np

from dissector.analysis.stats.field_bytes import FieldBytes, MessageKind
from dissector.core.arrays import Int64
from dissector.index.index_columns import IndexColumns

SAMPLE_SIZE: Final = 200
"""Exchanges of an API and version at most."""
_SEED: Final = 20261121


class ExchangeSampler:
    """The sample so far."""

    def __init__(self) -> None:
        self._chance = np.random.default_rng(_SEED)
        self._kept: dict[int, tuple[Int64, Int64]] = {}
        """By group: numbers by chance, ascending, and their rows."""

    def rows(self) -> list[int]:
        """The rows of the sample, ascending."""
        return sorted(number for _, rows in self._kept.values() for number in rows.tolist())

    def take(self, rows: Int64, groups: Int64, found: IndexColumns, fields: FieldBytes) -> None:
        """Draw from more rows; `groups` says which API and version each has. What there is of each goes to `fields`."""
        chance = self._chance.integers(0, 1 << 62, len(rows))
        order = np.lexsort((chance, groups))
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
            which = order[start:stop]
            group = int(groups[which[0]])
            self._keep(group, chance[which[:SAMPLE_SIZE]], rows[which[:SAMPLE_SIZE]])
            key, version = int(found.api_key[which[0]]), int(found.version[which[0]])
            for side, sizes in (("request", found.request_size[which]), ("response", found.response_size[which])):
                there = sizes >= 0
                if there.any():
                    sample = fields.of(MessageKind(key, version, side))
                    sample.messages += int(there.sum())
                    sample.bytes += int(sizes[there].sum())

    def _keep(self, group: int, chance: Int64, rows: Int64) -> None:
        kept = self._kept.get(group)
        if kept is not None:
            chance, rows = np.concatenate((kept[0], chance)), np.concatenate((kept[1], rows))
        order = np.argsort(chance, kind="stable")[:SAMPLE_SIZE]
        self._kept[group] = chance[order], rows[order]

"""Whether every byte of a capture's streams is accounted for: it is in one frame, gap or stretch of unparsed bytes,
which is in one row; or it is among the bytes of a direction that is not Kafka."""

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.core.batches import RunBatch
from dissector.core.stage import NOTHING_PENDING, Position, StageChain
from dissector.index.exchange_table import NO_FRAME


class Streams:
    """A stage between transport and framing that changes nothing: it notes where streams begin and end."""

    held_bytes = 0

    def __init__(self, capture: Capture) -> None:
        """Stand between the stages of a capture that is not read yet."""
        self._pipeline = capture.pipeline
        self._pipeline.streams = StageChain(self._pipeline.transport, self, self._pipeline.framer)
        self._first: dict[int, int] = {}
        """By direction."""
        self._end: dict[int, int] = {}

    def feed(self, batch: RunBatch) -> list[RunBatch]:
        rows = zip(batch.direction.tolist(), batch.start.tolist(), batch.size.tolist(), strict=True)
        for direction, start, size in rows:
            self._first.setdefault(direction, start)
            assert start == self._end.get(direction, start), f"direction {direction}: runs do not tile its stream"
            self._end[direction] = start + size
        return [batch]

    def end(self, _connections: Int64) -> list[RunBatch]:
        return []

    def flush(self) -> list[RunBatch]:
        return []

    def held_regions(self) -> Int64:
        return np.zeros((2, 0), np.int64)

    def oldest_pending(self, _after_ns: int = -1) -> Position:
        return NOTHING_PENDING

    def check(self) -> None:
        """Raise if a byte is in no frame or in two, or a frame in no row or in two. The capture is read."""
        table, frames = self._pipeline.indexer.table, self._pipeline.indexer.frames
        in_rows = np.concatenate([table.request.values, table.response.values])
        in_rows = np.sort(in_rows[in_rows != NO_FRAME])
        assert np.array_equal(in_rows, np.arange(len(frames))), "each frame is in one row"
        order = np.lexsort((frames.start.values, frames.direction.values))
        direction, start, size = (
            column.values[order].astype(np.int64) for column in (frames.direction, frames.start, frames.size)
        )
        follows = direction[1:] == direction[:-1]
        assert np.array_equal(start[1:][follows], (start + size)[:-1][follows]), "frames tile their stream"
        framed = {int(row): int(at) for row, at in zip(direction[::-1], start[::-1], strict=True)}  # the first of each
        ends = dict(zip(direction.tolist(), (start + size).tolist(), strict=True))
        for each, first in self._first.items():
            ignored = self._pipeline.framer.ignored(each)
            found = ends.get(each, 0) - framed.get(each, 0) + ignored
            # The last frame may announce more bytes than came.
            assert found == self._end[each] - first or (found > self._end[each] - first and each in ends), (
                f"direction {each}: {found:,} of {self._end[each] - first:,} bytes"
            )

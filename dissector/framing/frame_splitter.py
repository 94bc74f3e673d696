"""Splits held streams into frames one by one: the slow path, for what `fast_path` leaves."""

import struct
from itertools import takewhile
from typing import Final

from dissector.core.batches import NOWHERE, FrameKind
from dissector.core.limits import Limits
from dissector.core.store import Store
from dissector.framing.detector import LEAST_FRAME, LEAST_HEAD, PREFIX, Classification
from dissector.framing.direction_state import DirectionState
from dissector.framing.frame_rows import FrameRow
from dissector.framing.pending_stream import PendingStream, Piece

_SIZE: Final = struct.Struct(">i")


class FrameSplitter:
    """Splits streams. Where a size prefix is lost, the direction's mode becomes `SEARCH`."""

    def __init__(self, store: Store, limits: Limits, state: DirectionState) -> None:
        self._store = store
        self._limits = limits
        self._state = state

    def split(self, direction: int, stream: PendingStream) -> None:
        """Emit all frames that are complete; the rest stays held. Where a size prefix is lost a search is due."""
        while stream.at < stream.end:
            self._split_run(direction, stream)
            missing = stream.gap()
            if missing:
                self._state.skip(direction, stream, FrameKind.GAP, missing)
            elif stream.at == stream.end:
                break
            else:
                size = self._frame_size(stream)
                if size == 0 and not self._state.has_ended(direction):
                    return
                fits = LEAST_FRAME <= size <= PREFIX + self._limits.frame_size
                if fits or (size == PREFIX and _stands_alone(stream)):
                    if not self._frame(direction, stream, size):
                        return
                    continue
            self._state.mode.values[direction] = Classification.SEARCH
            self._state.needs_search.add(direction)
            return
        self._state.next.values[direction] = stream.at
        self._state.held.pop(direction, None)

    def _split_run(self, direction: int, stream: PendingStream) -> None:
        """Emit the frames that are complete within the next run: often a segment has more than one."""
        run = stream.run()
        if run.address == NOWHERE:
            return
        data = self._store.read(run.address, run.size)
        first = offset = stream.at - run.start
        while offset + PREFIX <= run.size:
            size = PREFIX + _SIZE.unpack_from(data, offset)[0]
            if not LEAST_FRAME <= size <= PREFIX + self._limits.frame_size or offset + size > run.size:
                break
            pieces = [(run.address + offset, size)]
            begin, kind = run.start + offset, FrameKind.FRAME
            self._state.rows.add(FrameRow(direction, kind, begin, size, run.seen, run.seen[0], pieces))
            offset += size
        stream.advance(offset - first)

    def _frame_size(self, stream: PendingStream) -> int:
        """The size of the frame that begins here, with its prefix; 0 where that is incomplete, -1 where it is lost."""
        prefix = stream.peek(self._store, PREFIX) or b""
        if len(prefix) == PREFIX:
            return PREFIX + int.from_bytes(prefix, "big", signed=True)
        return 0 if stream.end - stream.at < PREFIX else -1

    def _frame(self, direction: int, stream: PendingStream, size: int) -> bool:
        if stream.end - stream.at < size and not self._state.has_ended(direction):
            stream.need = stream.at + size
            return False
        pieces = stream.pieces(size)
        missing = size - sum(length for _, length in pieces)
        if missing:
            pieces.append((NOWHERE, missing))
        kind = FrameKind.FRAME if _intact(pieces) >= min(size, LEAST_HEAD) else FrameKind.UNPARSED
        is_cut = stream.is_cut(size)
        end_ns = stream.run(size - 1).seen[0]
        self._state.rows.add(FrameRow(direction, kind, stream.at, size, stream.run().seen, end_ns, pieces, is_cut))
        stream.advance(size)
        return True


def _intact(pieces: list[Piece]) -> int:
    """Bytes before the first gap."""
    return sum(size for _, size in takewhile(lambda piece: piece[0] != NOWHERE, pieces))


def _stands_alone(stream: PendingStream) -> bool:
    """Whether a size of 0 is all that a segment has: the empty frame with which old brokers end a PLAIN login."""
    run = stream.run()
    return run.start == stream.at and run.size == PREFIX

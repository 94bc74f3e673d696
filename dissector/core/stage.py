"""The contract of a stage: batches in, batches out, and what the stage holds until more arrives.

    packets -> transport -> runs -> TLS -> runs -> framing -> frames -> index

`StageChain` joins stages into one that keeps the same contract. A stage that fits between two others is one more
argument where the chain is made (`StagePipeline`), and a checkpoint keeps the chain.

What every stage guarantees, each a property test (`tests/core/test_stages.py`):
  * any cutting of the input into batches gives the same output once `flush` was called;
  * output is handed down batch by batch: the consumer takes each before it requests the next. Framing relies on it: it
    recognizes responses by the requests that the index has by then;
  * what a stage holds is bounded by `Limits`, whatever the input;
  * between two calls a stage can be copied (`pickle`, `object_graph`), and the copy goes on. Of the `Store` it needs
    the bytes in `held_regions` and no others: a checkpoint is the stages and an excerpt of the store.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NEVER

In_contra = TypeVar("In_contra", contravariant=True)
Out_co = TypeVar("Out_co", covariant=True)


class Position(NamedTuple):
    """A packet of the capture. Positions are ordered by packet number."""

    packet: int
    time_ns: int


NOTHING_PENDING: Final = Position(NEVER, NEVER)
"""The position of a stage that holds nothing: behind all packets."""


class Stage(Protocol[In_contra, Out_co]):
    """One step of dissection. `end` follows each `feed`, `flush` comes last.

    Iterate over what they return: some of it is computed on the way."""

    def feed(self, batch: In_contra) -> Iterable[Out_co]:
        """Take one batch; return what it completes."""

    def end(self, connections: Int64) -> Iterable[Out_co]:
        """Take note that nothing more comes of these connections, `(n,)`, often none; return what was held for them.

        Work that is done once a batch, and better with the ends known, is done here: framing searches for frames."""

    def flush(self) -> Iterable[Out_co]:
        """Take note that the capture ends; return all that was held."""

    @property
    def held_bytes(self) -> int:
        """Captured bytes that wait here for others: the sum of `held_regions`, and copies that the stage made."""

    def held_regions(self) -> Int64:
        """Addresses and sizes of the bytes in the store that this stage may still read, `(2, n)`."""

    def oldest_pending(self, after_ns: int = -1) -> Position:
        """The first packet, among those later than `after_ns`, of which something waits here; else `NOTHING_PENDING`.

        Output of later calls begins there or behind it."""


class StageChain:
    """Stages in sequence, as one stage. Each batch passes through all of them before the next one is made."""

    def __init__(self, *stages: Stage[Any, Any]) -> None:
        self._stages = stages

    def feed(self, batch: Any) -> Iterator[Any]:
        """Feed the first stage; return the output of the last."""
        return self._pass_down([batch], 0)

    def end(self, connections: Int64) -> Iterator[Any]:
        """End connections stage by stage, as each may hold some of their bytes."""
        for number, stage in enumerate(self._stages, 1):
            yield from self._pass_down(stage.end(connections), number)

    def flush(self) -> Iterator[Any]:
        """Flush stage by stage."""
        for number, stage in enumerate(self._stages, 1):
            yield from self._pass_down(stage.flush(), number)

    def _pass_down(self, batches: Iterable[Any], number: int) -> Iterator[Any]:
        """Feed batches to the stage with this number, counted from 0, and its output to those behind it."""
        for batch in batches:
            if number == len(self._stages):
                yield batch
            else:
                yield from self._pass_down(self._stages[number].feed(batch), number + 1)

    @property
    def held_bytes(self) -> int:
        return sum(stage.held_bytes for stage in self._stages)

    def held_regions(self) -> Int64:
        return np.concatenate([stage.held_regions() for stage in self._stages], axis=1)

    def oldest_pending(self, after_ns: int = -1) -> Position:
        return min(stage.oldest_pending(after_ns) for stage in self._stages)


def oldest_position(pending: Int64, after_ns: int) -> Position:
    """The first of `pending`, packets and times, `(2, n)`, that is later than `after_ns`."""
    packet, time_ns = pending[:, pending[1] > after_ns]
    if not len(packet):
        return NOTHING_PENDING
    first = int(packet.argmin())
    return Position(int(packet[first]), int(time_ns[first]))

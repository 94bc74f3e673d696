"""A capture as bytes, between two pieces of it: to be restored where its next packets are, in another process, later.

A checkpoint has the stages as they are (transport, framing, index, examination), and of the capture's bytes only those
that are still needed: of rows that were not taken, of frames that are not whole, of what waits behind a gap.

Invariants, each a property test:
  * a capture that is cut at any packets, however often, gives the rows of one that is read at once;
  * the bytes do not grow with what was read and is final, except for some 150 bytes for each connection ever seen.

The bytes are a pickle: restore only what you wrote.
"""

import io
import pickle
from collections.abc import Callable
from functools import _lru_cache_wrapper, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from dissector.core.arrays import Int64
from dissector.core.store import Excerpt, Store

if TYPE_CHECKING:
    from dissector.core.stage import StageChain
    from dissector.exchange.decoder import ExchangeDecoder
    from dissector.findings.framework.examination import Examination
    from dissector.framing import Framer
    from dissector.index.indexer import Indexer
    from dissector.tls import TlsStage
    from dissector.transport import Transport


class Checkpoint(NamedTuple):
    """The state of a capture."""

    store: Store
    streams: "StageChain"
    """All stages between packets and frames, whichever there are."""
    transport: "Transport"
    tls: "TlsStage"
    framer: "Framer"
    indexer: "Indexer"
    decoder: "ExchangeDecoder"
    examination: "Examination | None"
    pending_rows: Int64
    """Rows of the index that were not final yet when final rows were taken."""
    rows_seen: int
    """Rows of the index that were there then."""
    packets: int
    start_ns: int


def dump(state: Checkpoint, excerpt: Excerpt) -> bytes:
    """The checkpoint as bytes, with an excerpt of the store."""
    out = io.BytesIO()
    _Pickler(out, state.store, excerpt).dump(state)
    return out.getvalue()


def load(data: bytes) -> Checkpoint:
    """The checkpoint of these bytes."""
    return cast(Checkpoint, pickle.loads(data))


class _Pickler(pickle.Pickler):
    """Replaces the store by the excerpt, and caches by empty ones."""

    def __init__(self, out: io.BytesIO, store: Store, excerpt: Excerpt) -> None:
        super().__init__(out, pickle.HIGHEST_PROTOCOL)
        self._store = store
        self._excerpt = excerpt

    def reducer_override(self, value: object) -> Any:
        if value is self._store:
            return Store.of, (self._excerpt,)
        if isinstance(value, _lru_cache_wrapper):
            return _empty_cache, (value.cache_parameters()["maxsize"], value.__wrapped__)
        return NotImplemented


def _empty_cache(size: int | None, function: Callable[..., Any]) -> Any:
    return lru_cache(maxsize=size)(function)

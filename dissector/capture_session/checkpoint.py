"""A capture put down in the middle, as bytes, to be taken up where its next packets are: in another process, later.

What goes along are the stages as they stand (transport, framing, session, examination), and of the capture itself only
the bytes that they still ask for: of rows that nobody took, of frames that are not whole, of what waits behind a hole.

Invariants, each a property test:
  * a capture put down and taken up at any packet, and however often, gives the rows of one that was read at once;
  * the bytes do not grow with what was read and is settled, but for some 150 bytes a connection that was ever seen.

The bytes are a pickle: only who wrote them may be believed.
"""

import io
import pickle
from collections.abc import Callable
from functools import _lru_cache_wrapper, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from dissector.core.arrays import Int64
from dissector.core.store import Excerpt, Store

if TYPE_CHECKING:
    from dissector.exchange.decoder import ExchangeDecoder
    from dissector.findings.examination import Examination
    from dissector.framing import Framer
    from dissector.index.indexer import Indexer
    from dissector.transport import Transport


class Checkpoint(NamedTuple):
    """What `capture_session` is made of."""

    store: Store
    transport: "Transport"
    session: "Indexer"
    splitter: "Framer"
    lookup: "ExchangeDecoder"
    examination: "Examination | None"
    unsettled: Int64
    looked_upto: int
    packets: int
    start_ns: int


def checkpoint(carried: Checkpoint, excerpt: Excerpt) -> bytes:
    """As bytes, with an excerpt of the store."""
    out = io.BytesIO()
    _Pickler(out, carried.store, excerpt).dump(carried)
    return out.getvalue()


def restore(data: bytes) -> Checkpoint:
    """The other way."""
    return cast(Checkpoint, pickle.loads(data))


class _Pickler(pickle.Pickler):
    """Caches begin anew; the store has an excerpt of what it had."""

    def __init__(self, out: io.BytesIO, store: Store, excerpt: Excerpt) -> None:
        super().__init__(out, pickle.HIGHEST_PROTOCOL)
        self._store = store
        self._excerpt = excerpt

    def reducer_override(self, value: object) -> Any:
        if value is self._store:
            return Store.of, (self._excerpt,)
        if isinstance(value, _lru_cache_wrapper):
            return _cache, (value.cache_parameters()["maxsize"], value.__wrapped__)
        return NotImplemented


def _cache(most: int | None, function: Callable[..., Any]) -> Any:
    return lru_cache(maxsize=most)(function)

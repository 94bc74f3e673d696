"""A capture as columns, between two pieces of it: restored where its next packets are, in another process, later.

A checkpoint has the stages as they are (transport, framing, index, examination), as nodes of `core/object_graph`, and
of the capture's bytes only those that are still needed: of rows that were not taken, of frames that are not whole, of
what waits behind a gap.

Invariants, each a property test:
  * a capture that is cut at any packets, however often, gives the rows of one that is read at once;
  * the bytes do not grow with what was read and is final, except for some 150 bytes for each connection ever seen.
"""

from typing import TYPE_CHECKING, NamedTuple

from dissector.core.arrays import Int64
from dissector.core.store import Excerpt, Store

if TYPE_CHECKING:
    from dissector.core.object_graph import Nodes
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


def dump(state: Checkpoint, excerpt: Excerpt) -> "Nodes":
    """Return the nodes of a checkpoint, with an excerpt of the store."""
    from dissector.core.object_graph import to_nodes

    return to_nodes(state, state.store, excerpt)


def load(nodes: "Nodes") -> Checkpoint:
    """Return the checkpoint of these nodes. Raises `GraphError`."""
    from dissector.core.object_graph import GraphError, from_nodes

    found = from_nodes(nodes)
    if not isinstance(found, Checkpoint):
        raise GraphError("no checkpoint")
    return found

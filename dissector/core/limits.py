"""Every bound in one place: what one hostile or broken input may cost at most.

A cap that is hit is told as a finding or a gap, never as an exception and never silently.
"""

from dataclasses import dataclass
from typing import Final

BATCH_PACKETS: Final = 65_536
"""Packets in one `PacketBatch`: large enough for column code to win, small enough for progress to be smooth."""

FIRST_PACKETS: Final = 4_096
"""Packets in the first batch of a file: a screen has its first rows at once. The next ones are twice as large each."""

BATCH_BYTES: Final = 32 << 20
"""Bytes of the file that one `PacketBatch` spans: what of a mapped file becomes resident before it is let go of."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps on what is held and believed. Sizes in bytes; one instance is handed down from the face."""

    spooled_bytes: int = 64 << 30
    """Of one pipe or compressed file that go to temporary files; past it the rest is not read."""

    skipped_bytes: int = 256 << 20
    """Searched for the next packet behind damaged bytes; past it the rest of the file is left."""

    notes: int = 10_000
    """Comments of one file that are kept, and as many names of hosts; past it they are counted."""

    note_bytes: int = 4 << 10
    """Kept of one comment or name."""

    frame_size: int = 128 << 20
    """A size prefix above this is not believed (brokers default to `socket.request.max.bytes` = 100 MiB)."""

    out_of_order_bytes: int = 4 << 20
    """Held back for one direction while a hole may still be filled; past it the hole is a gap."""

    out_of_order_packets: int = 4_096
    """How many later packets of the capture a hole may wait for its bytes."""

    acknowledged_packets: int = 64
    """How many later packets of the capture a hole may wait once the peer has acknowledged its bytes: captures show an
    acknowledgement before what it answers, where several queues of a network card feed them."""

    resent: int = 100_000
    """Stretches of streams that TCP sent again, or brought late, that are remembered; past it they are counted."""

    connections: int = 262_144
    """Connections open at a time that are told apart from new ones; past it those idle for longest are forgotten."""

    remembered_packets: int = BATCH_PACKETS
    """For so many later packets of the capture, and up to twice as many, a connection that has ended is known to late
    and repeated packets of it."""

    fragment_bytes: int = 4 << 20
    """Held back of IP datagrams of which some fragments have not come yet, at each depth of tunnels; past it the oldest
    are given up."""

    undecided_bytes: int = 64 << 10
    """Held of what a server says while its client has not said enough to tell whether it speaks Kafka."""

    resync_bytes: int = 1 << 20
    """Half of what is searched for a frame before the search moves on, or gives up where Kafka is but a guess."""

    held_runs: int = 4_000_000
    """Runs (pieces of streams, some 40 bytes each) held of all directions until frames are complete or found; past it
    those that have waited longest come out as they are: half of them, as not Kafka or as unparsed bytes."""

    strangers: int = 10_000
    """Rows for connections on Kafka's port that speak something else; past it they are counted in one finding."""

    pending_requests: int = 100_000
    """Requests that wait for a response, of all connections; past it the oldest stay unanswered."""

    decompressed_size: int = 64 << 20
    """Bytes that one compressed record section may become."""

    decompressed_frame_size: int = 256 << 20
    """Bytes that all compressed sections of one frame may become."""

    packed_records: int = 20_000
    """Records that the compressed sections of one frame may hold beyond one for each of their bytes on the wire: so
    that what a frame costs grows with its size, and not with what a compressor can promise. Real records, which differ
    in offset and time, take more than a byte."""


DEFAULT: Final = Limits()

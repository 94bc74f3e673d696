"""All bounds in one place: what a hostile or broken input may cost at most.

A cap that is hit becomes a finding or a gap, never an exception, and never stays silent.
"""

from dataclasses import dataclass
from typing import Final

BATCH_PACKETS: Final = 32_768
"""Packets in one `PacketBatch`: large enough for column code to pay off, small enough for progress to be smooth."""

FIRST_PACKETS: Final = 4_096
"""Packets in the first batch of a file, so that a screen has rows at once. Each following batch is twice as large."""

BATCH_BYTES: Final = 16 << 20
"""Bytes of the file that one `PacketBatch` spans: what of a mapped file is resident before pages are released."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps on what is held and believed. Sizes in bytes. A `Capture` gets one instance."""

    spooled_bytes: int = 64 << 30
    """Bytes of one pipe or compressed file in temporary files; the rest is not read."""

    expansion: int = 1_000
    """How many times its size a compressed file may grow to, beyond `expansion_bytes`. Captures grow 5 to 50 times; one
    message again and again, 300 times."""

    expansion_bytes: int = 256 << 20
    """Bytes that any compressed file may grow to."""

    hex_text_bytes: int = 256 << 20
    """Bytes of a hex transcript, which is converted in memory; a larger one is refused."""

    pasted_bytes: int = 16 << 20
    """Bytes of a text in which bytes are searched for, in memory; a larger one is refused."""

    skipped_bytes: int = 256 << 20
    """Bytes searched for the next packet behind damage; past it the rest of the file is not read."""

    notes: int = 10_000
    """Comments of one file that are kept, and as many names of hosts; the others are counted."""

    note_bytes: int = 4 << 10
    """Bytes kept of one comment or name."""

    key_log_bytes: int = 64 << 20
    """Bytes of TLS key logs: of the blocks of one capture, and of one file. What is beyond is not read."""

    key_search: int = 1 << 25
    """Sequence numbers of TLS records that are tried to find the keys of connections whose handshake was not captured:
    three seconds. One connection has half of them."""

    frame_size: int = 128 << 20
    """A size prefix above this is not believed (brokers default to `socket.request.max.bytes` = 100 MiB)."""

    out_of_order_bytes: int = 4 << 20
    """Bytes held back for one direction while a hole may still be filled; past it the hole is a gap."""

    out_of_order_packets: int = 4_096
    """How many later packets of the capture a hole may wait for its bytes."""

    acknowledged_packets: int = 64
    """How many later packets of the capture a hole may wait once the peer has acknowledged its bytes. Where the queues
    of a network card are captured in parallel, an acknowledgement may come before its bytes."""

    late_packets: int = 65_536
    """How many later packets of the capture a hole may wait in both cases, as long as it may be filled late: captures
    of several points are merged by clocks that differ, and queues of a card lag. Bytes that are in the file are
    taken."""

    late_ns: int = 2_000_000_000
    """How long a hole waits at most, by the clock of a capture that grows, once it has waited for the packets above: so
    long the rows of a connection come late that lost bytes. Queues and links that are captured in parallel differ by
    milliseconds."""

    losses: int = 3
    """Holes of a direction that waited for so long in vain. From then on they wait for `acknowledged_packets` and
    `out_of_order_packets` alone."""

    retransmissions: int = 100_000
    """Retransmitted and delayed stretches of streams that are recorded; the others are counted."""

    connections: int = 262_144
    """Open connections in the lookup table; past it those idle for longest are evicted."""

    remembered_packets: int = 65_536
    """How many later packets of the capture, and up to twice as many, a connection that has ended stays in the lookup
    table, for its late and repeated packets."""

    fragment_bytes: int = 4 << 20
    """Bytes held of incomplete IP datagrams, at each depth of tunnels; past it the oldest are dropped."""

    undecided_bytes: int = 64 << 10
    """Bytes held of a direction while its peer has not sent enough to classify the connection."""

    resync_bytes: int = 1 << 20
    """Half of the bytes searched for a frame before the search moves on, or gives up where Kafka is only possible."""

    held_runs: int = 4_000_000
    """Runs (pieces of streams, some 40 bytes of memory each) held of all directions until frames are complete or found.
    Past it half of them, the oldest, are released as unparsed bytes or as not Kafka."""

    non_kafka_connections: int = 10_000
    """Rows for connections on Kafka's port that are not Kafka; the others are counted in one finding."""

    pending_requests: int = 100_000
    """Pending requests of all connections; past it the oldest stay without a response."""

    decompressed_size: int = 64 << 20
    """Decompressed bytes of one compressed record section."""

    decompressed_frame_size: int = 256 << 20
    """Decompressed bytes of all compressed sections of one frame."""

    packed_size: int = 16 << 20
    """Decompressed bytes that all compressed sections of one frame may have, whatever their size on the wire, ..."""

    packed_ratio: int = 100
    """... and how many more for each of their bytes on the wire. So 8 kB are at most 17 MB, in JSON 34 MB."""

    run_expansion: int = 128 << 20
    """Bytes that all frames of a run may become beyond `packed_ratio` times their size, decompressed records and lists
    of the partitions of fetch sessions, ..."""

    run_expansion_ratio: int = 100
    """... and how many more for each byte that the run reads, ..."""

    most_run_expansion: int = 1 << 30
    """... up to this. Real batches stay below `packed_ratio`; those that do not, of one value again and again, are
    mostly few: in a capture of 9 MB there is room for 1,000 of 1 MB, and for 26,000 Fetches of a session with 5,000
    partitions, or for 1,600 that change it."""

    packed_records: int = 20_000
    """Records and headers that the sections of one frame may have beyond one for each of their bytes on the wire, so
    that the cost of a frame grows with its size and not with its compression ratio. Real records, which differ in
    offset and time, take more than a byte."""

    frame_records: int = 1_000_000
    """Records and headers of one frame: half a gigabyte of values."""

    value_bytes: int = 4 << 20
    """Bytes of a record's key or value that are opened as JSON, Avro or Protobuf; a larger one stays text or bytes."""

    value_nodes: int = 200_000
    """Values inside one key or value, also those that take no bytes, such as nulls of an Avro array."""

    value_names: int = 16 << 20
    """Bytes of the names that a schema gives to what is inside one key or value: fields, symbols of enums. Data have a
    number in place of a name."""

    decimal_bytes: int = 1024
    """Bytes of a decimal that is shown as a number, in time that grows with their square; a longer one stays bytes."""

    value_depth: int = 100
    """How deep values are nested in each other, and types in an Avro schema."""

    schema_bytes: int = 4 << 20
    """Bytes of one schema, from a file or from a schema registry."""

    schemas: int = 10_000
    """Schemas of one run that are kept, and as many ids that are known to have none."""

    registry_seconds: float = 5.0
    """How long a schema registry may take for one schema with all that this refers to. After three failures it is not
    asked again."""

    notify_seconds: float = 10.0
    """How long the receiver of a notification may take to answer."""

    tree_nodes: int = 1_000_000
    """Nodes of one frame's tree: half a gigabyte of memory, and as many lines of text. The remaining bytes are leaves
    without fields."""


DEFAULT: Final = Limits()

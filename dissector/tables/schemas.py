"""Schemas of the tables: each column with its type, its meaning and its unit.

Invariants:
  * `capture`, `packet` and `start` identify a row of any table but `captures`: the same packets give the same rows,
    however they were distributed over tasks;
  * a row is valid if `captures` has its `capture` with the same `epoch`.

`python -m tools.lab.tables` writes `docs/tables.md` from this module.
"""

from typing import Final, NamedTuple

from dissector.protocol.records.compression import CODECS


class TableColumn(NamedTuple):
    """A column. `type` is Spark's."""

    name: str
    type: str
    words: str


class TableSchema(NamedTuple):
    """A table: its columns behind those of `KEYS`."""

    name: str
    words: str
    columns: tuple[TableColumn, ...]


_C: Final = TableColumn
_CODECS: Final = ", ".join(codec.name for codec in CODECS.values())

KEYS: Final = (
    _C("day", "DATE", "the day (UTC) on which the capture begins; 1970-01-01 if nothing in it has a time"),
    _C("capture", "STRING", "first 16 digits of the file's SHA-256"),
    _C("epoch", "BIGINT", "the ingest that wrote the row: later ones have higher numbers"),
)  # fmt: skip
_WHERE: Final = (
    _C("packet", "BIGINT", "number of the packet with the row's first byte, from 1, in its capture; number of the entry"
       " in a log"),
    _C("start", "BIGINT", "offset of the row's first byte in the stream of its direction, bytes; -1 if it has none"),
)  # fmt: skip
_FROM: Final = (
    *_WHERE,
    _C("time", "TIMESTAMP", "time of that packet, microseconds"),
    _C("time_ns", "BIGINT", "the same, nanoseconds since 1970 UTC"),
    _C("connection", "STRING", "the connection: the capture and packet with which it begins; null in a log"),
    _C("client", "STRING", "the client's address, host:port; null in a log"),
    _C("server", "STRING", "the server's address, host:port; null in a log"),
)
_MERGED: Final = _C(
    "merged_packet", "BIGINT", "number of that packet, from 1, among those of all captures with the same `merged_with`"
)
NO_BODIES: Final = "no-bodies"
"""The word in `options` of captures that have no rows in `bodies`."""
OF_MESSAGES: Final = 1 << 16
"""The place in its row of the first finding about a message."""
_FINDING: Final = "STRUCT<code: STRING, severity: STRING, path: STRING, message: STRING>"
TABLES: Final = (
    TableSchema("captures", "One row per file: a capture, one of Kafka's own files, or a file that could not be read", (
        _C("digest", "STRING", "SHA-256 of the file"),
        _C("path", "STRING", "path of the file when it was ingested"),
        _C("bytes", "BIGINT", "size of the file, bytes"),
        _C("packets", "BIGINT", "number of packets, or of entries in one of Kafka's own files"),
        _C("form", "STRING", "capture, hex (with made-up times), log (one of Kafka's own files), unread"),
        _C("first_time", "TIMESTAMP", "time of the first packet or entry, microseconds; null if there is none"),
        _C("begin_time", "TIMESTAMP", "earliest time of a packet, microseconds; null if there is none"),
        _C("end_time", "TIMESTAMP", "latest time of a packet, microseconds; null if there is none"),
        _C("first_ns", "BIGINT", "time of the first packet or entry, nanoseconds since 1970 UTC; 0 if there is none"),
        _C("begin_ns", "BIGINT", "earliest time of a packet, nanoseconds since 1970 UTC; 0 if there is none"),
        _C("end_ns", "BIGINT", "latest time of a packet, nanoseconds since 1970 UTC; 0 if there is none"),
        _C("link_types", "ARRAY<INT>", "LINKTYPE_ numbers"),
        _C("merged_with", "STRING", "the first of the captures that were ingested with this one and overlap with it "
                                    "in time; itself if there are none"),
        _C("version", "STRING", "version of kdissect that ingested it"),
        _C("options", "STRING", f"ingest options: frames, {NO_BODIES}, hash-records, show-secrets, keylog,"
           " decode-as tcp.port==19092,kafka; empty if none was given"),
        _C("problems", f"ARRAY<{_FINDING}>", "problems of this file and of all files that its run read together"),
        _C("contents", "STRING", "digest of all packets (times, lengths, link types, bytes) and TLS secrets in the "
                                 "file, or of the bytes of a log: the same in all formats, compressed or not; null if "
                                 "there are none, if times are made up, and in rows written by versions without this "
                                 "column"),
        _C("other_connections", "ARRAY<BIGINT>", "TCP connections without a row in `connections` because they contain "
                                                 "no Kafka traffic: number of the first packet of each, from 1, among "
                                                 "those of all captures with the same `merged_with`; only the first "
                                                 "of these captures lists them; null with `--follow`, and in rows "
                                                 "written by versions without this column"),
    )),
    TableSchema("connections", "One row per Kafka connection", (
        _C("connection", "STRING", "as in the other tables"),
        _C("packet", "BIGINT", "number of its first packet, from 1"),
        _MERGED,
        _C("begin_time", "TIMESTAMP", "time of its first packet, microseconds"),
        _C("end_time", "TIMESTAMP", "time of its last packet, microseconds"),
        _C("closed_time", "TIMESTAMP", "time of its first FIN or RST, microseconds; null if there was none"),
        _C("begin_ns", "BIGINT", "time of its first packet, nanoseconds since 1970 UTC"),
        _C("end_ns", "BIGINT", "time of its last packet, nanoseconds since 1970 UTC"),
        _C("closed_ns", "BIGINT", "time of its first FIN or RST, nanoseconds since 1970 UTC; null if there was none"),
        _C("opened", "BOOLEAN", "whether a SYN was captured; if not, the connection began before the capture"),
        _C("closed_by", "STRING", "client or server; null if it was not closed"),
        _C("client", "STRING", "the client's address, host:port"),
        _C("server", "STRING", "the server's address, host:port"),
        _C("software_name", "STRING", "name of the client's software (KIP-511)"),
        _C("software_version", "STRING", "version of the client's software (KIP-511)"),
        _C("tls_version", "STRING", "TLS version, such as TLS 1.3; like the next columns, null if there is no TLS or "
                                    "the value is unknown"),
        _C("tls_cipher", "STRING", "cipher suite"),
        _C("tls_sni", "STRING", "the host name that the client requested"),
        _C("tls_alpn", "STRING", "the protocol that the server chose (ALPN)"),
        _C("tls_principal", "STRING", "subject of the client's certificate"),
        _C("tls_resumed", "BOOLEAN", "whether it resumes an earlier session"),
        _C("tls_state", "STRING", "decrypted; no-keys; failed (the keys do not decrypt any record)"),
        _C("tls_ja4", "STRING", "fingerprint of the client (JA4)"),
        _C("offered", "MAP<INT, STRUCT<low: INT, high: INT>>", "versions that the server advertised, by API key"),
    )),
    TableSchema("exchanges", "One row per line of `kdissect show`", (
        *_FROM,
        _MERGED,
        _C("kind", "STRING", "exchange, gap, unparsed, tls, sasl; batch or index in Kafka's own files"),
        _C("api_key", "INT", "API key; null if the request is missing"),
        _C("api", "STRING", "name of the API, with a question mark if it is inferred"),
        _C("api_version", "INT", "API version"),
        _C("correlation_id", "BIGINT", "correlation id"),
        _C("client_id", "STRING", "client id"),
        _C("software_name", "STRING", "name of the client's software (KIP-511)"),
        _C("software_version", "STRING", "version of the client's software (KIP-511)"),
        _C("latency_ns", "BIGINT", "how long the client waits: from the first byte of the request to the last byte of "
                                   "the response, nanoseconds"),
        _C("request_size", "BIGINT", "bytes of the request on the wire, size prefix included"),
        _C("response_size", "BIGINT", "bytes of the response on the wire, size prefix included"),
        _C("expected_response", "BOOLEAN", "whether a response is expected: not for a Produce with acks=0; null if the"
           " request is missing"),
        _C("throttle_time_ms", "INT", "how long a quota makes the client wait; null if the response does not say"),
        _C("acks", "INT", "of a Produce: 0, 1, or -1 for all"),
        _C("timeout_ms", "INT", "in a Produce and in requests about topics: how long the broker may wait for other "
                                "brokers"),
        _C("max_wait_ms", "INT", "of a Fetch: how long the broker may wait for `min_bytes`"),
        _C("min_bytes", "INT", "of a Fetch"),
        _C("max_bytes", "INT", "of a Fetch: limit for the whole response"),
        _C("isolation_level", "STRING", "of a Fetch or ListOffsets: read_uncommitted or read_committed"),
        _C("session_id", "INT", "of a Fetch: its fetch session (KIP-227); 0 for a new one or none"),
        _C("session_epoch", "INT", "of a Fetch: 0 for a new session, -1 for none"),
        _C("errors", "ARRAY<STRING>", "names of the errors in the response, without duplicates"),
        _C("info", "STRING", "the info column of the list, without findings, which are in `findings`"),
        _C("request_transfer_ns", "BIGINT", "from the first to the last byte of the request, nanoseconds; null in "
                                            "tables written by versions without this column, where `latency_ns` ends "
                                            "at the first byte of the response"),
        _C("wait_ns", "BIGINT", "from the last byte of the request to the first byte of the response, nanoseconds"),
        _C("response_transfer_ns", "BIGINT", "from the first to the last byte of the response, nanoseconds"),
        _C("response_packet", "BIGINT", "number of the packet with the first byte of the response, from 1, in its"
           " capture"),
    )),
    TableSchema("bodies", "One row per row of `exchanges`, with its content; no rows for captures that were ingested "
                          "with `--no-bodies`", (
        *_WHERE,
        _C("request", "STRING", "the request as JSON: time_ns, size, header, body, as in `show --format json`; fields "
                                "with users' records have only their bytes and the size, count and codec of each "
                                "batch, because the records are in `records`"),
        _C("response", "STRING", "the response, in the same form"),
        _C("rest", "STRING", "content of other kinds of rows as JSON: a batch, an index entry, a token"),
        _C("request_bytes", "BINARY", "bytes of the request, with secrets masked; null unless they are kept"),
        _C("response_bytes", "BINARY", "bytes of the response, with secrets masked; null unless they are kept"),
    )),
    TableSchema("records", "One row per record that was produced or fetched, or is in a log", (
        *_FROM,
        _C("api", "STRING", "the API that carried it; batch in a log"),
        _C("client_id", "STRING", "client id"),
        _C("topic", "STRING", "name of the topic, or its id if the capture has no name; in a log, from the name of "
                              "its folder"),
        _C("partition", "INT", "number of the partition"),
        _C("offset", "BIGINT", "offset; counted from 0 in a produced batch"),
        _C("timestamp", "TIMESTAMP", "timestamp; null in magic 0, and if the year does not have four digits"),
        _C("timestamp_ms", "BIGINT", "timestamp, milliseconds since 1970 UTC; null in magic 0"),
        _C("key", "BINARY", "key; null if there is none, or if it is not kept"),
        _C("value", "BINARY", "value; null if there is none, or if it is not kept"),
        _C("key_size", "BIGINT", "bytes of the key; null if there is none"),
        _C("value_size", "BIGINT", "bytes of the value; null if there is none"),
        _C("key_sha256", "BINARY", "SHA-256 of the key; null if the key is kept, or if there is none"),
        _C("value_sha256", "BINARY", "SHA-256 of the value; null if the value is kept, or if there is none"),
        _C("headers", "ARRAY<STRUCT<key: STRING, value: BINARY>>", "headers; without values if those are not kept"),
        _C("producer_id", "BIGINT", "producer id of the batch; -1 if it is not idempotent"),
        _C("producer_epoch", "INT", "producer epoch of the batch"),
        _C("sequence", "INT", "sequence number: the batch's base sequence plus the record's position; -1 if the batch"
           " is not idempotent"),
        _C("codec", "STRING", f"compression of the batch: {_CODECS}"),
        _C("control", "BOOLEAN", "whether it is a control record, such as the end of a transaction"),
    )),
    TableSchema("batches", "One row per record batch (magic 2), even if its records can't be read", (
        *_FROM,
        _C("api", "STRING", "the API that carried it; batch in a log"),
        _C("client_id", "STRING", "client id"),
        _C("topic", "STRING", "name of the topic, or its id if the capture has no name; in a log, from the name of "
                              "its folder"),
        _C("partition", "INT", "number of the partition"),
        _C("base_offset", "BIGINT", "offset of its first record; counted from 0 when it is produced"),
        _C("last_offset", "BIGINT", "offset of its last record; null if that has more than 64 bits"),
        _C("record_count", "BIGINT", "number of its records, according to its header"),
        _C("size", "BIGINT", "bytes on the wire, header included"),
        _C("uncompressed_size", "BIGINT", "bytes that it would have without compression, header included; null if it"
           " can't be decompressed"),
        _C("codec", "STRING", f"compression: {_CODECS}"),
        _C("timestamp_type", "STRING", "CreateTime or LogAppendTime"),
        _C("first_timestamp", "TIMESTAMP", "its base timestamp; null if the year does not have four digits"),
        _C("first_timestamp_ms", "BIGINT", "the same, milliseconds since 1970 UTC"),
        _C("max_timestamp", "TIMESTAMP", "its greatest timestamp; null if the year does not have four digits"),
        _C("max_timestamp_ms", "BIGINT", "the same, milliseconds since 1970 UTC"),
        _C("producer_id", "BIGINT", "producer id; -1 if it is not idempotent"),
        _C("producer_epoch", "INT", "producer epoch; -1 if it is not idempotent"),
        _C("base_sequence", "INT", "sequence number of its first record; -1 if it is not idempotent"),
        _C("transactional", "BOOLEAN", "whether it is part of a transaction"),
        _C("control", "BOOLEAN", "whether it has control records, such as the end of a transaction"),
        _C("crc_valid", "BOOLEAN", "whether its CRC-32C matches its bytes"),
        _C("error", "STRING", "why its records can't be read; null if they can"),
    )),
    TableSchema("partitions", "One row per partition in a Produce, Fetch, ListOffsets, Metadata, OffsetCommit,"
                " TxnOffsetCommit or OffsetFetch", (
        *_FROM,
        _C("api", "STRING", "name of the API"),
        _C("client_id", "STRING", "client id"),
        _C("topic", "STRING", "name of the topic, or its id if the capture has no name"),
        _C("partition", "INT", "number of the partition"),
        _C("group_id", "STRING", "the consumer group whose offset is committed or requested"),
        _C("acks", "INT", "acks of a Produce: 0, 1, or -1 for all"),
        _C("transactional_id", "STRING", "transactional id of a Produce or TxnOffsetCommit"),
        _C("isolation_level", "STRING", "of a Fetch or ListOffsets: read_uncommitted or read_committed"),
        _C("offset", "BIGINT", "the offset that is committed or fetched from, or that the broker returns (the first "
                               "offset of produced records; the committed offset; -1 for none)"),
        _C("high_watermark", "BIGINT", "in a Fetch: the offset after the last record that consumers may see"),
        _C("last_stable_offset", "BIGINT", "in a Fetch: the same for read_committed"),
        _C("log_start_offset", "BIGINT", "in a Produce or Fetch: the first offset in the log"),
        _C("leader", "INT", "in a Metadata: id of the broker that leads the partition; -1 for none"),
        _C("leader_epoch", "INT", "leader epoch in the response"),
        _C("records_size", "BIGINT", "bytes of the produced or fetched records; null if there are none"),
        _C("error", "STRING", "name of the error; null if there is none"),
    )),
    TableSchema("groups", "One row per message and member that changes a consumer group or shows a change", (
        *_FROM,
        _C("api", "STRING", "name of the API"),
        _C("client_id", "STRING", "client id"),
        _C("group_id", "STRING", "the consumer group"),
        _C("event", "STRING", "join: by a new member; rejoin: by a known member; sync; leave; epoch: a new epoch or "
                              "assignment (KIP-848); error: a rejected heartbeat"),
        _C("member_id", "STRING", "id of the member"),
        _C("group_instance_id", "STRING", "instance id of a static member (KIP-345)"),
        _C("generation", "INT", "generation of the group, or epoch of the member (KIP-848); null if there is none"),
        _C("protocol_type", "STRING", "type of the group: consumer, connect, share, streams, …"),
        _C("protocol", "STRING", "the chosen assignor"),
        _C("leader", "STRING", "id of the group's leader, in the response to a JoinGroup"),
        _C("member_count", "INT", "number of members, in the leader's response to a JoinGroup"),
        _C("session_timeout_ms", "INT", "in a JoinGroup: time without a heartbeat after which a member is removed"),
        _C("rebalance_timeout_ms", "INT", "in a JoinGroup or a heartbeat of KIP-848: how long a member may take to "
                                          "rejoin"),
        _C("reason", "STRING", "the reason for which the member joins or leaves, as it gives it (KIP-800)"),
        _C("error", "STRING", "name of the error; null if there is none"),
    )),
    TableSchema("topics", "One row per topic in a Metadata, DescribeTopicPartitions, CreateTopics, CreatePartitions or"
                " DeleteTopics", (
        *_FROM,
        _C("api", "STRING", "name of the API"),
        _C("client_id", "STRING", "client id"),
        _C("topic", "STRING", "name of the topic"),
        _C("topic_id", "STRING", "its id (KIP-516), as Kafka prints it; null if it has none or the message omits it"),
        _C("internal", "BOOLEAN", "whether it is one of Kafka's internal topics"),
        _C("partition_count", "INT", "number of partitions listed or requested"),
        _C("replication_factor", "INT", "number of replicas of a partition"),
        _C("error", "STRING", "name of the error; null if there is none"),
    )),
    TableSchema("brokers", "One row per broker in a Metadata or DescribeCluster", (
        *_FROM,
        _C("api", "STRING", "name of the API"),
        _C("client_id", "STRING", "client id"),
        _C("broker", "INT", "id of the broker"),
        _C("host", "STRING", "host at which clients reach it"),
        _C("port", "INT", "port at which clients reach it"),
        _C("rack", "STRING", "its rack"),
        _C("controller", "BOOLEAN", "whether it is the controller; in a cluster with KRaft, the broker that "
                                    "represents it"),
        _C("cluster_id", "STRING", "id of the cluster"),
    )),
    TableSchema("findings", "One row per finding about a row of `exchanges`", (
        *_WHERE,
        _C("nth", "INT", "its position among the findings of the row: those of the exchange from 0, those of its"
           f" messages from {OF_MESSAGES:,}; null, which sorts between the two, if the finding depends on later"
           " messages"),
        _C("code", "STRING", "code of the finding: see `kdissect explain CODE`"),
        _C("severity", "STRING", "note, warning or error"),
        _C("path", "STRING", "path of the field that it points to"),
        _C("message", "STRING", "the finding in plain words"),
        _C("replaces", "STRING", "message of an earlier row of the same finding, which is no longer valid; null if"
           " there is none"),
    )),
    TableSchema("gaps", "One row per part of a stream that is missing or contains no frame", (
        *_FROM,
        _C("kind", "STRING", "gap: not captured; unparsed: no frame was recognized"),
        _C("direction", "STRING", "request: sent by the client; response: sent by the server"),
        _C("size", "BIGINT", "bytes"),
    )),
    TableSchema("quarantine", "One row per part of a file that could not be read", (
        _C("path", "STRING", "path of the file"),
        _C("at", "BIGINT", "offset in the file, after decompression if that succeeds; null if the whole file could not"
           " be read"),
        _C("packet", "BIGINT", "number of the packet or entry expected there, from 1"),
        _C("size", "BIGINT", "bytes"),
        _C("reason", "STRING", "why it could not be read"),
        _C("data", "BINARY", "its first 64 KiB, if the file is a capture and was ingested with --show-secrets and "
                             "without --hash-records; otherwise null, because the bytes may hold secrets"),
    )),
)  # fmt: skip
OBSERVATIONS: Final = TableSchema(
    "observations", "One row per observation, for cross-connection findings. Staged, removed after the run", (
    _C("extractor", "STRING", "name of the extractor that emitted it"),
    _C("scope", "STRING", "what it is about: observations of one scope are aggregated together"),
    _C("packet", "BIGINT", "number of the packet with the row's first byte, from 0, in the capture of all files"),
    _C("start", "BIGINT", "offset of that byte in the stream of its direction, bytes"),
    _C("nth", "BIGINT", "its position among the observations of its partition"),
    _C("file", "INT", "of files that overlap in time and are merged: number of the one with that packet"),
    _C("file_packet", "BIGINT", "the packet's number in it, from 0"),
    _C("value", "STRING", "scope, class of the value, and value of the observation as JSON"),
))  # fmt: skip
BY_NAME: Final = {table.name: table for table in TABLES}
FACT_TABLES: Final = (
    "connections", "exchanges", "bodies", "partitions", "groups", "topics", "brokers", "batches", "records", "findings",
    "gaps", "quarantine",
)  # fmt: skip
"""Tables whose rows come from packets and entries: all but `captures`."""
OF_REQUEST: Final = (
    "acks", "timeout_ms", "max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "session_id", "session_epoch",
)  # fmt: skip
"""Columns of `exchanges` that are numbers of request bodies; `isolation_level` as a text."""
OF_RESPONSE: Final = ("throttle_time_ms",)
"""The same of response bodies."""
ROW_KEY: Final = ("capture", "packet", "start")
"""Columns that identify a row."""


def ddl(table: TableSchema) -> str:
    """Return all columns as Spark's DDL."""
    return ", ".join(f"{column.name} {column.type}" for column in (*KEYS, *table.columns))

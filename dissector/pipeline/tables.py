"""The tables: every column with its type and what it says, units included. The one place that knows.

Invariants:
  * a row of any table but `captures` is found again by `capture`, `packet` and `start`: the same packets give the same
    rows, however they were dealt out;
  * `day` and `capture` are the partitions of all tables but `captures`: they are folders, not columns of the files.

`docs/tables.md` is made of it: `python -m tools.lab.tables`.
"""

from typing import Final, NamedTuple


class Column(NamedTuple):
    """`type` is Spark's. `of_json` are those that stand as JSON until Spark reads it, as VARIANT."""

    name: str
    type: str
    words: str
    of_json: bool = False


class Table(NamedTuple):
    """Columns beside the partitions."""

    name: str
    words: str
    columns: tuple[Column, ...]


PARTITIONS: Final = (
    Column("day", "DATE", "the day (UTC) on which the capture begins; 1970-01-01 where nothing in it has a time"),
    Column("capture", "STRING", "SHA-256 of the file, first 16 digits; of files merged, of the one that begins first"),
)  # fmt: skip
_WHERE: Final = (
    Column("packet", "BIGINT", "number of the packet with its first byte, from 1, in its capture; of a log's entry"),
    Column("start", "BIGINT", "offset of its first byte in its direction's stream, bytes; -1 where it has none"),
)
_FROM: Final = (
    *_WHERE,
    Column("time_ns", "BIGINT", "when that packet came, nanoseconds since 1970 UTC"),
    Column("connection", "STRING", "the connection: capture and packet with which it begins; null in a log"),
    Column("client", "STRING", "the client's end, host:port; null in a log"),
    Column("server", "STRING", "the server's end, host:port; null in a log"),
)
_FINDING: Final = "STRUCT<code: STRING, severity: STRING, path: STRING, message: STRING>"
TABLES: Final = (
    Table("captures", "a row a file: a capture, one of Kafka's own, or one that could not be read", (
        Column("digest", "STRING", "SHA-256 of the file"),
        Column("path", "STRING", "where it lay"),
        Column("bytes", "BIGINT", "its size"),
        Column("packets", "BIGINT", "packets in it; of a file of Kafka's own its entries"),
        Column("form", "STRING", "capture, hex (its times are made up), log (a file of Kafka's own), unread"),
        Column("first_ns", "BIGINT", "time of its first packet or entry, nanoseconds since 1970 UTC; 0 where none"),
        Column("begin_ns", "BIGINT", "time of its earliest packet, nanoseconds since 1970 UTC; 0 where there is none"),
        Column("end_ns", "BIGINT", "time of its latest packet"),
        Column("link_types", "ARRAY<INT>", "LINKTYPE_ numbers"),
        Column("run", "STRING", "the run of ingest that brought it"),
        Column("problems", f"ARRAY<{_FINDING}>", "what is wrong with it, and with all that its run read"),
    )),
    Table("connections", "a row a TCP connection that is Kafka's", (
        Column("connection", "STRING", "as in the other tables"),
        Column("packet", "BIGINT", "number of its first packet, from 1"),
        Column("begin_ns", "BIGINT", "time of its first packet, nanoseconds since 1970 UTC"),
        Column("closed_ns", "BIGINT", "time of its first FIN or RST; null where none was seen"),
        Column("closed_by", "STRING", "client or server; null where it was not closed"),
        Column("client", "STRING", "the client's end, host:port"),
        Column("server", "STRING", "the server's end, host:port"),
        Column("software_name", "STRING", "what the client says it is (KIP-511)"),
        Column("software_version", "STRING", "and its version"),
        Column("offered", "MAP<INT, STRUCT<low: INT, high: INT>>", "versions that the server offered, by API key"),
    )),
    Table("exchanges", "a row a line of `kdissect show`", (
        *_FROM,
        Column("kind", "STRING", "exchange, gap, unparsed, tls, sasl; batch or index of Kafka's own files"),
        Column("api_key", "INT", "the API's key; null where the request is not there"),
        Column("api", "STRING", "the API's name; with a question mark where it is inferred"),
        Column("api_version", "INT", "the API's version"),
        Column("correlation_id", "BIGINT", "the correlation id"),
        Column("client_id", "STRING", "what the client calls itself"),
        Column("software_name", "STRING", "the software that the client says it is (KIP-511)"),
        Column("software_version", "STRING", "and its version"),
        Column("latency_ns", "BIGINT", "from request to response, nanoseconds"),
        Column("request_size", "BIGINT", "bytes on the wire, size prefix included"),
        Column("response_size", "BIGINT", "bytes on the wire, size prefix included"),
        Column("errors", "ARRAY<STRING>", "names of the response's errors, each once"),
        Column("severity", "STRING", "of its gravest finding: note, warning, error; null where there is none"),
        Column("info", "STRING", "the words of the list"),
        Column(
            "request", "VARIANT", "the request: time_ns, size, header, body, as in `show --format json`; fields of"
            " users' records have their bytes, and of batches size, count, codec: records are rows of `records`", True,
        ),
        Column("response", "VARIANT", "the response, likewise", True),
        Column("rest", "VARIANT", "what other rows have: a batch, an entry of an index, a token", True),
        Column("request_bytes", "BINARY", "the request's bytes, secrets masked; null unless they are kept"),
        Column("response_bytes", "BINARY", "the response's bytes, likewise"),
    )),
    Table("records", "a row a record that was produced, fetched, or stands in a log", (
        *_FROM,
        Column("api", "STRING", "the API that carried it; batch in a log"),
        Column("client_id", "STRING", "what the client calls itself"),
        Column("topic", "STRING", "the topic's name, or its id where none was seen; of a log by its folder"),
        Column("partition", "INT", "the partition"),
        Column("offset", "BIGINT", "its offset; counted from 0 in a batch that is produced"),
        Column("timestamp_ms", "BIGINT", "its timestamp, milliseconds since 1970 UTC; null in magic 0"),
        Column("key", "BINARY", "the key; null where it has none, or was not kept"),
        Column("value", "BINARY", "the value; null where it has none, or was not kept"),
        Column("key_size", "BIGINT", "bytes of the key; null where it has none"),
        Column("value_size", "BIGINT", "bytes of the value; null where it has none"),
        Column("key_sha256", "BINARY", "SHA-256 of the key; null where it is kept, or there is none"),
        Column("value_sha256", "BINARY", "SHA-256 of the value; null where it is kept, or there is none"),
        Column("headers", "ARRAY<STRUCT<key: STRING, value: BINARY>>", "its headers; no values where none are kept"),
        Column("producer_id", "BIGINT", "of the batch; -1 where it is not idempotent"),
        Column("producer_epoch", "INT", "of the batch"),
        Column("sequence", "INT", "the batch's base sequence, and its place in it; -1 where it is not idempotent"),
        Column("codec", "STRING", "of the batch: none, gzip, snappy, lz4, zstd"),
        Column("control", "BOOLEAN", "whether it is Kafka's own, as the end of a transaction, and no user's record"),
    )),
    Table("findings", "a row a finding about a row of exchanges", (
        *_FROM,
        Column("api", "STRING", "the API"),
        Column("code", "STRING", "what was found: kdissect explain CODE"),
        Column("severity", "STRING", "note, warning or error"),
        Column("path", "STRING", "the field that it points at"),
        Column("message", "STRING", "in plain words"),
    )),
    Table("gaps", "a row a piece of a stream that is missing, or is no frame", (
        *_FROM,
        Column("kind", "STRING", "gap: not captured; unparsed: no frame could be told"),
        Column("direction", "STRING", "request: sent by the client; response: by the server"),
        Column("size", "BIGINT", "bytes"),
    )),
    Table("quarantine", "a row a place of a file that could not be read", (
        Column("path", "STRING", "the file"),
        Column("at", "BIGINT", "offset in the file, decompressed where that can be; null: none of it could be read"),
        Column("packet", "BIGINT", "number of the packet, or of the entry, that should stand there, from 1"),
        Column("size", "BIGINT", "bytes"),
        Column("reason", "STRING", "why it could not be read"),
        Column("data", "BINARY", "its first 64 KiB"),
    )),
)  # fmt: skip
NOTES: Final = Table("notes", "a row a note: what it takes several connections to tell. Staged, and kept by nobody", (
    Column("noter", "STRING", "who noted it, and with it what it is"),
    Column("scope", "STRING", "what it is about: with others of that it is brought together"),
    Column("packet", "BIGINT", "number of the packet with the row's first byte, from 0, in the capture of all files"),
    Column("start", "BIGINT", "offset of that byte in its direction's stream, bytes"),
    Column("nth", "BIGINT", "its place among the notes of its part"),
    Column("note", "BINARY", "scope and note, pickled"),
))  # fmt: skip
FOUND: Final = Table("found", "a row a finding that several connections tell. Staged, and kept by nobody", (
    *_WHERE,
    *(column for table in TABLES if table.name == "findings" for column in table.columns[-4:]),
))  # fmt: skip
ANEW: Final = Table("anew", "a row a finding about a row that is there, or its new words. Staged, kept by nobody", (
    *FOUND.columns,
    Column("before", "STRING", "the message as it stands in the tables; null where there is none"),
))  # fmt: skip
BY_NAME: Final = {table.name: table for table in TABLES}
OF_PARTS: Final = ("connections", "exchanges", "records", "findings", "gaps", "quarantine")
"""Tables that those who read parts of the packets, or files, give rows of: all but that of captures."""
AS_WRITTEN: Final = ("connections", "records", "gaps", "quarantine")
"""Those of which rows stay as parts write them: without JSON, and nothing is found of them by others."""


def ddl(table: Table, *, before: bool = False) -> str:
    """Its columns in Spark's words; `before` JSON was read."""
    return ", ".join(f"{c.name} {'STRING' if before and c.of_json else c.type}" for c in table.columns)

"""The registry of row fields: what a row is asked for by name, without a path into a message.

`--fields`, the filter, `stats --by`, the columns and the sort order of the screen, the keys of JSON and completion all
read `ROW_FIELDS`. A new row field is one entry of `_FIELDS`.

Invariant: a field's values from the index are those from the exchange: a property test.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cache, partial
from typing import Final, NamedTuple

from dissector.core.finding import Severity
from dissector.exchange.connection_facts import ConnectionFacts
from dissector.exchange.index_rows import IndexRows, RowValues, RowValueSets, truth
from dissector.exchange.message_subjects import ERROR, GROUP, PARTITION, TOPIC, MessageSubject
from dissector.exchange.model import UNKNOWN_API, Exchange, ExchangeRow
from dissector.index.exchange_table import KIND_NAMES
from dissector.protocol.schema.enums import ERROR_CODE, name_of
from dissector.protocol.schema.loader import api_name, api_named
from dissector.tls.session import TlsSession

Value = str | int | None
FromExchange = Callable[[Exchange], Value]
EXCHANGE: Final = KIND_NAMES[0]
INFO: Final = "info"


class FieldType(StrEnum):
    """What the values of a row field are."""

    INTEGER = "number"
    SIZE = "size"
    DURATION = "duration"
    TIME = "time"
    TEXT = "text"
    PRESENCE = "presence"
    """`true`, or no value."""
    KIND = "kind of row"
    CONNECTION = "connection"
    ADDRESS = "IP address"
    API = "API"
    ERROR = "error"
    FINDING = "finding"
    SEVERITY = "severity"

    @property
    def unit(self) -> str:
        """The unit of a bare number; empty for none."""
        return {FieldType.SIZE: "bytes", FieldType.DURATION: "ns", FieldType.TIME: "ns since 1970"}.get(self, "")


NUMBERS: Final = (FieldType.INTEGER, FieldType.SIZE, FieldType.DURATION, FieldType.TIME)
"""Types whose values are numbers, and print as such."""


class RowField(NamedTuple):
    """A field of rows.

    `from_exchange` gives what JSON and `--fields` print; a field with several values joins them by commas.
    """

    name: str
    description: str
    type: FieldType
    heading: str
    """Above its column."""
    from_exchange: FromExchange
    from_index: tuple[Callable[[IndexRows], RowValues], ...] = ()
    """Its columns of the index, without decoding: a row has the values of all of them. Empty if the index has none."""
    from_summary: Callable[[IndexRows], RowValues | RowValueSets] | None = None
    """Its column once rows have been examined."""
    aliases: tuple[str, ...] = ()
    of_exchanges: bool = False
    """Whether only exchanges have it, and no other kind of row."""
    compared: Callable[[Exchange], Iterable[object]] | None = None
    """The values that a filter compares, if they differ from what is printed: numbers of names, several values."""
    show: Callable[[int], Value] | None = None
    """What is printed for a number of a column."""
    subject: MessageSubject | None = None
    """The fields of messages that it stands for."""
    has_several_values: bool = False
    """Whether a row may have more than one."""
    reads_findings: bool = False
    """Whether it depends on findings: an unexamined capture does not have all of them."""
    json_key: str = ""
    """Its key in the JSON object of an exchange; empty if the object has it elsewhere, or not at all."""
    table_columns: tuple[str, ...] = ()
    """Its columns in the table of exchanges; none if these lack a part of it."""

    @property
    def is_indexed(self) -> bool:
        """Whether the index gives it without decoding, except for the odd row."""
        return bool(self.from_index)

    @property
    def names(self) -> tuple[str, ...]:
        """The name, then the aliases."""
        return (self.name, *self.aliases)

    def values(self, exchange: Exchange) -> Iterable[object]:
        """The values that a filter compares."""
        if self.compared is not None:
            return self.compared(exchange)
        value = self.from_exchange(exchange)
        return () if value is None else (value,)


def _of_exchange(value: Callable[[ExchangeRow], Value]) -> FromExchange:
    """A value that only exchanges have."""
    return lambda exchange: value(exchange.fields) if exchange.fields.kind == EXCHANGE else None


def _of_tls(value: Callable[[TlsSession], Value]) -> FromExchange:
    """A value that only rows of encrypted connections have."""
    return lambda exchange: None if exchange.tls is None else value(exchange.tls)


def _response_time_ns(row: ExchangeRow) -> int | None:
    if row.response_size is None:
        return None
    return row.time_ns if row.request_size is None else row.time_ns + (row.latency_ns or 0)


def _api_keys(exchange: Exchange) -> Iterable[int]:
    """The API's key, also if it is inferred: ``Fetch?`` is Fetch."""
    if exchange.fields.kind != EXCHANGE:
        return ()
    key = exchange.api_key
    if key is None and exchange.fields.api != UNKNOWN_API:
        known = api_named(exchange.fields.api.removesuffix("?"))
        key = known.key if known else None
    return () if key is None else (key,)


def _severities(exchange: Exchange) -> Iterable[int]:
    severity = exchange.row.severity
    return () if severity is None else (tuple(Severity).index(severity),)


def _codes(exchange: Exchange) -> list[str]:
    return [finding.code for finding in exchange.findings]


def _sizes(exchange: Exchange) -> list[int]:
    return [size for size in (exchange.fields.request_size, exchange.fields.response_size) if size is not None]


def _ends(exchange: Exchange) -> list[str]:
    return [end for end in (exchange.fields.client, exchange.fields.server) if end]


def joined(values: Iterable[object]) -> str | None:
    """Several values as one text; None for no value."""
    texts = [str(value) for value in values if value is not None]
    return ",".join(texts) if texts else None


def _subject(subject: MessageSubject) -> FromExchange:
    """Each value once."""
    return lambda exchange: joined(dict.fromkeys(subject.of(exchange)))


def _errors(exchange: Exchange) -> str | None:
    """The names of errors, each once."""
    codes = dict.fromkeys(code for code in ERROR.of(exchange) if isinstance(code, int) and code)
    return joined(name_of(ERROR_CODE, code) for code in codes)


def _topics(exchange: Exchange) -> str | None:
    """Names, each once, and the ids of topics without a name."""
    contexts = [message.context for message in (exchange.request, exchange.response) if message is not None]
    names = {key: name for context in contexts for key, name in context.topic_names.items()}
    return joined(dict.fromkeys(names.get(str(topic), topic) for topic in TOPIC.of(exchange) if topic))


def _of_connection(
    name: str, description: str, kind: FieldType, heading: str, *values: Callable[[ConnectionFacts], Value],
    aliases: tuple[str, ...] = (),
) -> RowField:  # fmt: skip
    """A field that all rows of a connection share; a row has all of some `values`."""

    def compared(exchange: Exchange) -> list[object]:
        facts = exchange.connection_facts
        return [each for each in (value(facts) for value in values) if each is not None]

    read = IndexRows.numbers_of_connection if kind in NUMBERS else IndexRows.texts_of_connection
    return RowField(
        name, description, kind, heading,
        (lambda exchange: joined(compared(exchange))) if len(values) > 1
        else (lambda exchange: values[0](exchange.connection_facts)),
        tuple(partial(read, value=value) for value in values),  # type: ignore[arg-type]  # a kind has its type of value
        aliases=aliases, compared=compared, has_several_values=len(values) > 1,
    )  # fmt: skip


def _severity(place: int) -> str:
    return tuple(Severity)[place].value


def _true(_number: int) -> str:
    return "true"


_FIELDS: Final = (
    RowField(
        "kind", "exchange, gap, unparsed, tls, sasl; batch or index in Kafka's files", FieldType.KIND, "Kind",
        lambda exchange: exchange.fields.kind, (IndexRows.kind,),
        json_key="kind", table_columns=("kind",),
    ),
    RowField(
        "number", "the row's number, from 1", FieldType.INTEGER, "No.",
        lambda exchange: exchange.fields.number, (IndexRows.number,),
        json_key="number", table_columns=("number",),
    ),
    RowField(
        "connection", "the TCP connection's number, as C3 or 3", FieldType.CONNECTION, "Conn",
        lambda exchange: exchange.fields.connection, (IndexRows.connection,), aliases=("conn",),
        json_key="connection", table_columns=("conn",),
    ),
    RowField(
        "client", "the client's address, host:port", FieldType.TEXT, "From",
        lambda exchange: exchange.fields.client or None, (IndexRows.client,),
        json_key="client", table_columns=("client",),
    ),
    RowField(
        "server", "the broker's address, host:port; the file of an entry of Kafka's files", FieldType.TEXT, "To",
        lambda exchange: exchange.fields.server, (IndexRows.server,), aliases=("broker",),
        json_key="server", table_columns=("server",),
    ),
    RowField(
        "address", "the client's address or the broker's, host:port", FieldType.TEXT, "Address",
        lambda exchange: joined(_ends(exchange)), (IndexRows.client, IndexRows.server), compared=_ends,
        has_several_values=True, table_columns=("client", "server"),
    ),
    _of_connection(
        "ip.addr", "the client's IP address or the broker's: 10.0.0.1, 10.0.0.0/8", FieldType.ADDRESS, "IP",
        lambda facts: facts.client_ip, lambda facts: facts.server_ip,
    ),
    _of_connection(
        "ip.src", "the client's IP address: 10.0.0.1, 10.0.0.0/8", FieldType.ADDRESS, "Client IP",
        lambda facts: facts.client_ip, aliases=("client.ip",),
    ),
    _of_connection(
        "ip.dst", "the broker's IP address: 10.0.0.1, 10.0.0.0/8", FieldType.ADDRESS, "Broker IP",
        lambda facts: facts.server_ip, aliases=("server.ip", "broker.ip"),
    ),
    _of_connection(
        "tcp.port", "the client's port or the broker's", FieldType.INTEGER, "Port",
        lambda facts: facts.client_port, lambda facts: facts.server_port,
    ),
    _of_connection(
        "tcp.srcport", "the client's port", FieldType.INTEGER, "Client port",
        lambda facts: facts.client_port, aliases=("client.port",),
    ),
    _of_connection(
        "tcp.dstport", "the broker's port", FieldType.INTEGER, "Broker port",
        lambda facts: facts.server_port, aliases=("server.port", "broker.port"),
    ),
    _of_connection(
        "host", "the client's host name or the broker's, from the capture or by --resolve; else the IP address",
        FieldType.TEXT, "Host", lambda facts: facts.client_host, lambda facts: facts.server_host,
    ),
    _of_connection(
        "client.host", "the client's host name, from the capture or by --resolve; else the IP address",
        FieldType.TEXT, "Client host", lambda facts: facts.client_host,
    ),
    _of_connection(
        "server.host", "the broker's host name, from the capture or by --resolve; else the IP address",
        FieldType.TEXT, "Broker host", lambda facts: facts.server_host, aliases=("broker.host",),
    ),
    _of_connection(
        "process", "the name of the client's process; only in live captures on its machine", FieldType.TEXT, "Process",
        lambda facts: facts.process and facts.process.name, aliases=("client.process",),
    ),
    _of_connection(
        "pid", "the id of the client's process; only in live captures on its machine", FieldType.INTEGER, "PID",
        lambda facts: facts.process and facts.process.pid, aliases=("process.pid", "client.pid"),
    ),
    _of_connection(
        "container", "the id of the client's container; only in live captures on its machine", FieldType.TEXT,
        "Container",
        lambda facts: (facts.process and facts.process.container) or None, aliases=("client.container",),
    ),
    _of_connection(
        "server.process", "the name of the broker's process; only in live captures on its machine", FieldType.TEXT,
        "Broker process", lambda facts: facts.server_process and facts.server_process.name, aliases=("broker.process",),
    ),
    _of_connection(
        "server.pid", "the id of the broker's process; only in live captures on its machine", FieldType.INTEGER,
        "Broker PID", lambda facts: facts.server_process and facts.server_process.pid, aliases=("broker.pid",),
    ),
    _of_connection(
        "tcp.rtt", "round-trip time of the connection's handshake", FieldType.DURATION, "RTT",
        lambda facts: facts.tcp and facts.tcp.handshake_ns,
    ),
    _of_connection(
        "tcp.ack_rtt", "shortest time from data to its acknowledgement on the connection", FieldType.DURATION,
        "ACK RTT",
        lambda facts: facts.tcp and facts.tcp.least_ack_ns,
    ),
    _of_connection(
        "tcp.retransmitted", "bytes retransmitted on the connection, both ways", FieldType.SIZE, "Retransmitted",
        lambda facts: facts.tcp and facts.tcp.sides[0].retransmitted + facts.tcp.sides[1].retransmitted,
    ),
    _of_connection(
        "tcp.lost", "bytes of the connection that are not in the capture, both ways", FieldType.SIZE, "Lost",
        lambda facts: facts.tcp and facts.tcp.sides[0].lost + facts.tcp.sides[1].lost,
    ),
    _of_connection(
        "tcp.zero_windows", "segments of the connection with a receive window of 0, both ways",
        FieldType.INTEGER, "0 windows",
        lambda facts: facts.tcp and facts.tcp.sides[0].zero_windows + facts.tcp.sides[1].zero_windows,
    ),
    _of_connection(
        "tcp.full_windows", "segments of the connection that filled the other end's window, both ways",
        FieldType.INTEGER, "Full windows",
        lambda facts: facts.tcp and facts.tcp.sides[0].full_windows + facts.tcp.sides[1].full_windows,
    ),
    _of_connection(
        "tcp.out", "bytes that the client sent on the connection", FieldType.SIZE, "Sent",
        lambda facts: facts.tcp and facts.tcp.sides[0].bytes,
    ),
    _of_connection(
        "tcp.in", "bytes that the broker sent on the connection", FieldType.SIZE, "Received",
        lambda facts: facts.tcp and facts.tcp.sides[1].bytes,
    ),
    RowField(
        "time", "when the row begins: since the capture's start, or as a date", FieldType.TIME, "Time",
        lambda exchange: exchange.fields.time_ns, (IndexRows.time,), aliases=("time_ns",),
        table_columns=("time_ns",),
    ),
    RowField(
        "api_key", "the API's key", FieldType.INTEGER, "Key",
        lambda exchange: exchange.api_key, (IndexRows.api_key,), of_exchanges=True,
        json_key="api_key", table_columns=("api_key",),
    ),
    RowField(
        "api", "the API, by name or key", FieldType.API, "API",
        _of_exchange(lambda row: None if row.api == UNKNOWN_API else row.api), (IndexRows.api,),
        of_exchanges=True, compared=_api_keys, show=api_name,
        json_key="api", table_columns=("api_key", "api"),
    ),
    RowField(
        "api_version", "the API's version", FieldType.INTEGER, "v",
        _of_exchange(lambda row: row.version), (IndexRows.api_version,), aliases=("version",), of_exchanges=True,
        json_key="api_version", table_columns=("api_version",),
    ),
    RowField(
        "correlation_id", "the correlation id", FieldType.INTEGER, "Corr",
        _of_exchange(lambda row: row.correlation_id), (IndexRows.correlation_id,), aliases=("corr",),
        of_exchanges=True, json_key="correlation_id", table_columns=("correlation_id",),
    ),
    RowField(
        "client_id", "the client id of the request", FieldType.TEXT, "Client",
        _of_exchange(lambda row: row.client_id), (IndexRows.client_id,), of_exchanges=True,
        json_key="client_id", table_columns=("client_id",),
    ),
    RowField(
        "latency", "from request to response: 50ms, 1.5s", FieldType.DURATION, "Latency",
        _of_exchange(lambda row: row.latency_ns), (IndexRows.latency,), aliases=("latency_ns",),
        json_key="latency_ns", table_columns=("latency_ns",),
    ),
    RowField(
        "request.time_ns", "when the request was sent", FieldType.TIME, "Requested",
        lambda exchange: None if exchange.fields.request_size is None else exchange.fields.time_ns,
        (IndexRows.request_time,),
    ),
    RowField(
        "request.size", "bytes of the request, size prefix included: 8k, 1MiB", FieldType.SIZE, "Out",
        lambda exchange: exchange.fields.request_size, (IndexRows.request_size,),
        table_columns=("request_size",),
    ),
    RowField(
        "response.time_ns", "when the response was sent", FieldType.TIME, "Responded",
        lambda exchange: _response_time_ns(exchange.fields), (IndexRows.response_time,),
    ),
    RowField(
        "response.size", "bytes of the response, size prefix included: 8k, 1MiB", FieldType.SIZE, "In",
        lambda exchange: exchange.fields.response_size, (IndexRows.response_size,),
        table_columns=("response_size",),
    ),
    RowField(
        "size", "bytes of the request or of the response: 8k, 1MiB", FieldType.SIZE, "Bytes",
        lambda exchange: joined(_sizes(exchange)), (IndexRows.request_size, IndexRows.response_size),
        compared=_sizes, has_several_values=True, table_columns=("request_size", "response_size"),
    ),
    RowField(
        "request", "whether the request is in the capture", FieldType.PRESENCE, "Request",
        lambda exchange: "true" if exchange.fields.kind == EXCHANGE and exchange.request is not None else None,
        (IndexRows.request,), of_exchanges=True, show=_true, table_columns=("request_size",),
    ),
    RowField(
        "response", "whether the response is in the capture", FieldType.PRESENCE, "Response",
        lambda exchange: "true" if exchange.fields.kind == EXCHANGE and exchange.response is not None else None,
        (IndexRows.response,), of_exchanges=True, show=_true, table_columns=("response_size",),
    ),
    RowField(
        "error", "any error of the response, at any depth, by name or code; NONE: it has none", FieldType.ERROR,
        "Error", _errors, from_summary=IndexRows.errors, of_exchanges=True, compared=ERROR.of, subject=ERROR,
        has_several_values=True,
    ),
    RowField(
        "topic", "any topic, by name, even if the message has only its id", FieldType.TEXT, "Topic",
        _topics, of_exchanges=True, compared=TOPIC.of, subject=TOPIC, has_several_values=True,
    ),
    RowField(
        "partition", "any partition, by number", FieldType.INTEGER, "Partition",
        _subject(PARTITION), of_exchanges=True, compared=PARTITION.of, subject=PARTITION, has_several_values=True,
    ),
    RowField(
        "group", "any consumer group, by name", FieldType.TEXT, "Group",
        _subject(GROUP), of_exchanges=True, compared=GROUP.of, subject=GROUP, has_several_values=True,
    ),
    RowField(
        "tls.version", "the connection's TLS version, such as TLS 1.3", FieldType.TEXT, "TLS",
        _of_tls(lambda session: session.version), (IndexRows.tls_version,),
        table_columns=("tls_version",),
    ),
    RowField(
        "tls.cipher", "the cipher suite, such as TLS_AES_128_GCM_SHA256", FieldType.TEXT, "Cipher",
        _of_tls(lambda session: session.cipher), (IndexRows.tls_cipher,),
        table_columns=("tls_cipher",),
    ),
    RowField(
        "tls.sni", "the host name that the client asked for", FieldType.TEXT, "SNI",
        _of_tls(lambda session: session.server_name), (IndexRows.tls_sni,),
        table_columns=("tls_sni",),
    ),
    RowField(
        "tls.principal", "the subject of the client's certificate, such as CN=alice", FieldType.TEXT, "Principal",
        _of_tls(lambda session: session.principal), (IndexRows.tls_principal,),
        table_columns=("tls_principal",),
    ),
    RowField(
        "tls.resumed", "whether the connection resumes an earlier session: true, false", FieldType.TEXT,
        "Resumed", _of_tls(lambda session: truth(session.is_resumed)), (IndexRows.tls_resumed,),
    ),
    RowField(
        "tls.state", "decrypted; no-keys; failed (the keys decrypt no record)", FieldType.TEXT, "TLS state",
        _of_tls(lambda session: session.state.value), (IndexRows.tls_state,),
        table_columns=("tls_state",),
    ),
    RowField(
        "finding", "the code of a finding, such as unanswered", FieldType.FINDING, "Findings",
        lambda exchange: joined(_codes(exchange)), from_summary=IndexRows.findings, aliases=("findings",),
        compared=_codes, has_several_values=True, reads_findings=True,
    ),
    RowField(
        "severity", "the worst finding's severity: note, warning, error", FieldType.SEVERITY, "Severity",
        lambda exchange: None if exchange.row.severity is None else exchange.row.severity.value,
        from_summary=IndexRows.severity, compared=_severities, show=_severity, reads_findings=True,
    ),
    RowField(
        INFO, "the text of the Info column", FieldType.TEXT, "Info",
        lambda exchange: exchange.row.info or None, reads_findings=True,
    ),
)  # fmt: skip

ROW_FIELDS: Final[dict[str, RowField]] = {field.name: field for field in _FIELDS} | {
    alias: field for field in _FIELDS for alias in field.aliases
}
"""All row fields, by every name and alias."""


def row_fields() -> Iterator[RowField]:
    """All row fields, each once, in the order of the registry."""
    return (field for name, field in ROW_FIELDS.items() if name == field.name)


@cache
def json_fields() -> Mapping[str, FromExchange]:
    """The row fields at the top of the JSON object of an exchange, by their keys."""
    return {field.json_key: field.from_exchange for field in row_fields() if field.json_key}

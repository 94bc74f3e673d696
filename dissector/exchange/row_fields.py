"""The registry of row fields: what a row is asked for by name, without a path into a message.

`--fields`, the filter, `stats --by`, the columns and the sort order of the screen, the keys of JSON and completion all
read `ROW_FIELDS`. A new row field is one entry of `_FIELDS`; one of connections, of `connection_fields`.

Invariant: a field's values from the index are those from the exchange: a property test.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Final

from dissector.core.finding import Severity
from dissector.exchange.connection_fields import CONNECTION_FIELDS, TLS_FIELDS
from dissector.exchange.index_rows import IndexRows
from dissector.exchange.message_subjects import ERROR, GROUP, PARTITION, REASON_OF_MEMBER, TOPIC, MessageSubject
from dissector.exchange.model import UNKNOWN_API, Exchange, ExchangeRow
from dissector.exchange.row_field import FieldType, FromExchange, RowField, Value, joined
from dissector.index.exchange_table import KIND_NAMES
from dissector.protocol.schema.enums import ERROR_CODE, name_of
from dissector.protocol.schema.loader import api_name, api_named

EXCHANGE: Final = KIND_NAMES[0]


def _of_exchange(value: Callable[[ExchangeRow], Value]) -> FromExchange:
    """A value that only exchanges have."""
    return lambda exchange: value(exchange.fields) if exchange.fields.kind == EXCHANGE else None


def _response_time_ns(row: ExchangeRow) -> int | None:
    if row.response_size is None:
        return None
    if row.request_size is None:
        return row.time_ns
    return row.time_ns + (row.latency_ns or 0) - (row.response_transfer_ns or 0)


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


def _subject(subject: MessageSubject) -> FromExchange:
    """Each value once."""
    return lambda exchange: joined(dict.fromkeys(subject.of(exchange)))


def error_names(errors: Iterable[object]) -> list[str]:
    """Return the names of a response's errors, each once, of the values of `ERROR`."""
    codes = dict.fromkeys(code for code in errors if isinstance(code, int) and code)
    return [name_of(ERROR_CODE, code) for code in codes]


def topic_names(exchange: Exchange, topics: Iterable[object]) -> list[str]:
    """Return names of topics, each once, and the ids of topics without a name, of values of `TOPIC`."""
    contexts = [message.context for message in (exchange.request, exchange.response) if message is not None]
    names = {key: name for context in contexts for key, name in context.topic_names.items()}
    return [*dict.fromkeys(str(names.get(str(topic), topic)) for topic in topics if topic)]


def _errors(exchange: Exchange) -> str | None:
    return joined(error_names(ERROR.of(exchange)))


def _topics(exchange: Exchange) -> str | None:
    return joined(topic_names(exchange, TOPIC.of(exchange)))


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
    *CONNECTION_FIELDS,
    RowField(
        "time", "when the row begins: since the start of the capture, or as a date", FieldType.TIME, "Time",
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
        "latency", "how long the client waits, from the first byte of the request to the last of the response: 50ms,"
        " 1.5s", FieldType.DURATION, "Latency",
        _of_exchange(lambda row: row.latency_ns), (IndexRows.latency,), aliases=("latency_ns",),
        json_key="latency_ns", table_columns=("latency_ns",),
    ),
    RowField(
        "request.transfer", "from the first byte of the request to its last byte", FieldType.DURATION, "Sending",
        _of_exchange(lambda row: row.request_transfer_ns), (IndexRows.request_transfer,),
        aliases=("request_transfer_ns",), json_key="request_transfer_ns", table_columns=("request_transfer_ns",),
    ),
    RowField(
        "wait", "from the last byte of the request to the first byte of the response", FieldType.DURATION, "Wait",
        _of_exchange(lambda row: row.wait_ns), (IndexRows.wait,),
        aliases=("wait_ns",), json_key="wait_ns", table_columns=("wait_ns",),
    ),
    RowField(
        "response.transfer", "from the first byte of the response to its last byte", FieldType.DURATION, "Receiving",
        _of_exchange(lambda row: row.response_transfer_ns), (IndexRows.response_transfer,),
        aliases=("response_transfer_ns",), json_key="response_transfer_ns", table_columns=("response_transfer_ns",),
    ),
    RowField(
        "packet", "the packet with which the row begins: Wireshark's frame.number", FieldType.INTEGER, "Packet",
        lambda exchange: exchange.fields.packet, (IndexRows.packet,),
    ),
    RowField(
        "response.packet", "the packet with the first byte of the response", FieldType.INTEGER, "Answered in",
        _of_exchange(lambda row: row.response_packet), (IndexRows.response_packet,),
        aliases=("response_packet",), table_columns=("response_packet",),
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
        "error", "any error of the response, at any depth, by name or code; NONE if it has no error", FieldType.ERROR,
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
        "reason", "the reason that a member gives for joining or leaving its group", FieldType.TEXT, "Reason",
        _subject(REASON_OF_MEMBER), of_exchanges=True, compared=REASON_OF_MEMBER.of, subject=REASON_OF_MEMBER,
        has_several_values=True,
    ),
    *TLS_FIELDS,
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
        "info", "the text of the Info column", FieldType.TEXT, "Info",
        lambda exchange: exchange.row.info or None, reads_findings=True,
    ),
)  # fmt: skip


def by_name(fields: Iterable[RowField]) -> dict[str, RowField]:
    """Return fields by their names, then by their aliases. Raises `ValueError` for a key of JSON without columns: JSON
    of many rows is written from the index, that of tables from their columns."""
    found: dict[str, RowField] = {}
    aliases: dict[str, RowField] = {}
    for field in fields:
        if field.json_key and not (field.from_index and field.table_columns):
            raise ValueError(f"row field {field.name}: a key of JSON needs columns of the index and of tables")
        found[field.name] = field
        aliases |= dict.fromkeys(field.aliases, field)
    return found | aliases


ROW_FIELDS: Final = by_name(_FIELDS)
"""All row fields, by every name and alias."""


def row_fields() -> Iterator[RowField]:
    """All row fields, each once, in the order of the registry."""
    return (field for name, field in ROW_FIELDS.items() if name == field.name)


@cache
def json_fields() -> Mapping[str, FromExchange]:
    """The row fields at the top of the JSON object of an exchange, by their keys."""
    return {field.json_key: field.from_exchange for field in row_fields() if field.json_key}

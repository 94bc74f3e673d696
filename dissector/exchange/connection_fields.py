"""Row fields that all rows of a connection share: addresses, host names, processes, TCP, TLS.

A new one is an entry here; `row_fields` has them in the order in which they are listed.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from dissector.exchange.connection_facts import ConnectionFacts
from dissector.exchange.index_rows import IndexRows, truth
from dissector.exchange.model import Exchange
from dissector.exchange.row_field import NUMBERS, FieldType, FromExchange, RowField, Value, joined
from dissector.tls.session import TlsSession


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


def _of_tls(value: Callable[[TlsSession], Value]) -> FromExchange:
    """A value that only rows of encrypted connections have."""
    return lambda exchange: None if exchange.tls is None else value(exchange.tls)


CONNECTION_FIELDS: Final = (
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
        "tcp.ack_rtt", "shortest time from data to its acknowledgment on the connection", FieldType.DURATION,
        "ACK RTT",
        lambda facts: facts.tcp and facts.tcp.least_ack_ns,
    ),
    _of_connection(
        "tcp.retransmitted", "bytes retransmitted on the connection (both directions)", FieldType.SIZE, "Retransmitted",
        lambda facts: facts.tcp and facts.tcp.sides[0].retransmitted + facts.tcp.sides[1].retransmitted,
    ),
    _of_connection(
        "tcp.lost", "bytes of the connection missing from the capture (both directions)", FieldType.SIZE, "Lost",
        lambda facts: facts.tcp and facts.tcp.sides[0].lost + facts.tcp.sides[1].lost,
    ),
    _of_connection(
        "tcp.zero_windows", "segments of the connection with a receive window of 0 (both directions)",
        FieldType.INTEGER, "0 windows",
        lambda facts: facts.tcp and facts.tcp.sides[0].zero_windows + facts.tcp.sides[1].zero_windows,
    ),
    _of_connection(
        "tcp.full_windows", "segments of the connection that filled the other end's window (both directions)",
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
)  # fmt: skip

TLS_FIELDS: Final = (
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
        "tls.sni", "the host name that the client requested", FieldType.TEXT, "SNI",
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
)  # fmt: skip

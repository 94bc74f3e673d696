"""An exchange as one JSON object, as `docs/formats.md` describes it: Kafka's names in snake_case, bytes as hex.

Numbers that are not finite are strings.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from dissector.core.expansion import LISTED, LISTED_TOPIC, RUN
from dissector.core.finding import Finding
from dissector.core.json_text import dumps, finite
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.exchange.row_fields import json_fields
from dissector.protocol.codec.plan import holds, plan
from dissector.protocol.message import Values
from dissector.tls.certificates import Certificate
from dissector.tls.session import TlsSession

PARTIAL_BYTES: Final = "body_bytes"
"""Key of the bytes of a body that could not be read to its end, as far as `body` has their fields. `rest` follows."""


def json_line(exchange: Exchange) -> bytes:
    """Return the object as one line."""
    return dumps(exchange_object(exchange)) + b"\n"


Body = Callable[[ExchangeMessage], Values]


def whole_body(message: ExchangeMessage) -> Values:
    """Return a message's body with what its bytes fields hold."""
    return message.decoded_body


def exchange_object(exchange: Exchange, body: Body = whole_body) -> dict[str, Any]:
    """Return the object, its leaves still Python's; bodies are what `body` returns."""
    if exchange.fields.kind != "exchange":
        return _other_object(exchange)
    return {
        **{key: value(exchange) for key, value in json_fields().items()},
        **tls_object(exchange.tls),
        **messages_object(exchange, body),
        "findings": findings_object(exchange),
    }


def messages_object(exchange: Exchange, body: Body = whole_body) -> dict[str, Any]:
    """Return the part of the object that has the two messages."""
    return {"request": _request(exchange, body), "response": _message(exchange.response, body)}


def findings_object(exchange: Exchange) -> list[dict[str, str]]:
    """Return the findings of an exchange."""
    return [finding_object(each) for each in exchange.findings]


def finding_object(finding: Finding) -> dict[str, str]:
    """Return a finding."""
    return {
        "code": finding.code, "severity": finding.severity.value, "path": finding.path, "message": finding.message,
    }  # fmt: skip


def tls_object(session: TlsSession | None) -> dict[str, Any]:
    """Return the part of the object that has the TLS of its connection: none for one that is not encrypted."""
    if session is None:
        return {}
    return {
        "tls": {
            "version": session.version,
            "cipher": session.cipher,
            "sni": session.server_name,
            "alpn": session.application_protocol,
            "principal": session.principal,
            "resumed": session.is_resumed,
            "state": session.state.value,
        }
    }


def _handshake_object(session: TlsSession | None) -> dict[str, Any]:
    """The same with what its hellos and certificates say besides."""
    found = tls_object(session)
    if session is not None:
        found["tls"] |= {
            "ja4": session.ja4,
            "exchanges": session.exchanges,
            "server_certificate": _certificate(session.server_certificate),
            "client_certificate": _certificate(session.client_certificate),
        }
    return found


def _certificate(certificate: Certificate | None) -> dict[str, Any] | None:
    if certificate is None:
        return None
    return {
        "subject": certificate.subject,
        "issuer": certificate.issuer,
        "valid_from": certificate.valid_from.isoformat(),
        "valid_until": certificate.valid_until.isoformat(),
        "host_names": list(certificate.host_names),
    }


def _other_object(exchange: Exchange) -> dict[str, Any]:
    """An entry of one of Kafka's own files, or what is between frames."""
    fields = exchange.fields
    findings = {"findings": findings_object(exchange)}
    if exchange.is_stored and exchange.request is not None:
        where = {"kind": fields.kind, "number": fields.number, "file": fields.server, "time_ns": fields.time_ns}
        return where | {"size": fields.request_size} | exchange.request.body | findings
    size = fields.request_size if fields.response_size is None else fields.response_size
    message = exchange.request or exchange.response
    token = message.decoded_body if message is not None and fields.kind == "sasl" else {}
    token = {"masked": message.masked_size} if message is not None and message.masked_size else token
    head: dict[str, Any] = {
        "kind": fields.kind,
        "number": fields.number,
        "connection": fields.connection,
        "client": fields.client,
        "server": fields.server,
        "direction": "response" if fields.request_size is None else "request",
        "time_ns": fields.time_ns,
        "size": size,
    }
    return head | _handshake_object(exchange.tls) | token | findings


def _request(exchange: Exchange, body: Body) -> dict[str, Any] | None:
    """A request; of an incremental Fetch also the partitions of its session."""
    value = _message(exchange.request, body)
    if value is None or not exchange.has_session or not RUN.admits_session() or exchange.fetched is None:
        return value
    size = sum(LISTED_TOPIC + len(topic) + LISTED * len(numbers) for topic, numbers in exchange.fetched.items())
    RUN.take_session(exchange.fetched, size)
    session = [{"topic": topic, "partitions": numbers} for topic, numbers in exchange.fetched.items()]
    return value | {"fetch_session": session}


def _message(message: ExchangeMessage | None, body: Body) -> dict[str, Any] | None:
    return None if message is None else message_object(message, body)


def message_object(message: ExchangeMessage, body: Body = whole_body) -> dict[str, Any]:
    """Return the object of one message."""
    values, rest = body(message), message.rest
    value = {
        "time_ns": message.time_ns,
        "size": message.size,
        "header": message.header,
        "body": finite(values) if _has_floats(message.layout.body, message.layout.body_version) else values,
    }
    if message.partial_bytes:
        value[PARTIAL_BYTES] = message.partial_bytes.hex()
    value = value | {"rest": rest.hex()} if rest else value
    return value | {"masked": message.masked_size} if message.masked_size else value


@cache
def _has_floats(body: str | None, version: int) -> bool:
    """Whether a message can hold a number that JSON lacks; two in a hundred can."""
    return body is not None and holds(plan(body, version), "float64")

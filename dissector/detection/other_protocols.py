"""Recognizes protocols other than Kafka by their first bytes, to count them by name.

Each signature is what every connection begins with by the protocol's specification, long enough to rule out chance.
Invariant: no Kafka request matches one.
"""

import re
from enum import IntEnum
from functools import cache
from typing import Final


class OtherProtocol(IntEnum):
    """The protocol of a TCP connection that is not Kafka, as far as known."""

    NO_DATA = 0
    """No data was captured."""
    UNDETERMINED = 1
    """Not decided yet."""
    UNKNOWN = 2
    """Not Kafka, and none of those below."""
    TLS = 3
    HTTP = 4
    HTTP2 = 5
    SSH = 6
    ZOOKEEPER = 7
    POSTGRESQL = 8
    MYSQL = 9
    MONGODB = 10
    REDIS = 11
    AMQP = 12
    MQTT = 13
    SMTP_OR_FTP = 14
    SMB = 15
    FASTCGI = 16
    PROXY = 17

    @property
    def label(self) -> str:
        """Its name for people."""
        return _NAMES.get(self, self.name)


_NAMES: Final = {
    OtherProtocol.NO_DATA: "without data",
    OtherProtocol.UNDETERMINED: "unknown",
    OtherProtocol.UNKNOWN: "unknown",
    OtherProtocol.HTTP2: "HTTP/2",
    OtherProtocol.ZOOKEEPER: "ZooKeeper",
    OtherProtocol.POSTGRESQL: "PostgreSQL",
    OtherProtocol.MYSQL: "MySQL",
    OtherProtocol.MONGODB: "MongoDB",
    OtherProtocol.REDIS: "Redis",
    OtherProtocol.SMTP_OR_FTP: "SMTP or FTP",
    OtherProtocol.FASTCGI: "FastCGI",
    OtherProtocol.PROXY: "PROXY protocol",
}

_SIGNATURES: Final = {
    # A TLS record: type, legacy version (RFC 8446, 5.1). Records of a connection in progress look so too.
    OtherProtocol.TLS: rb"[\x14-\x17]\x03[\x00-\x04]",
    # A request line or a status line (RFC 9112, 3 and 4).
    OtherProtocol.HTTP: rb"(?:GET|HEAD|POST|PUT|DELETE|CONNECT|OPTIONS|TRACE|PATCH) [^ \r\n]|HTTP/1\.[01] \d{3}",
    # The client's preface (RFC 9113, 3.4).
    OtherProtocol.HTTP2: rb"PRI \* HTTP/2\.0\r\n",
    # The version exchange (RFC 4253, 4.2).
    OtherProtocol.SSH: rb"SSH-[12]\.\d",
    # ConnectRequest: size 44 or 45, protocol version 0, zxid, timeout, session, a password of 16 bytes; or a word of
    # four letters.
    OtherProtocol.ZOOKEEPER: rb"\0\0\0[,-]\0{4}.{8}\0[\0-\x02].{10}\0\0\0\x10"
    rb"|(?:ruok|stat|mntr|srvr|conf|envi|cons)\n?$",
    # StartupMessage of protocol 3 with its first parameter, or SSLRequest.
    OtherProtocol.POSTGRESQL: rb"\0\0..\0\x03\0\0(?:user|database|application_name|options|replication)\0"
    rb"|\0\0\0\x08\x04\xd2\x16\x2f",
    # Protocol::HandshakeV10: size, sequence 0, version 10, the server's version.
    OtherProtocol.MYSQL: rb"..\0\0\x0a\d+\.\d+\.[ -~]*\0",
    # OP_MSG or OP_QUERY where the header has its opcode, little-endian.
    OtherProtocol.MONGODB: rb"..\0\0.{8}(?:\xdd\x07|\xd4\x07)\0\0",
    # An array of bulk strings.
    OtherProtocol.REDIS: rb"\*\d+\r\n\$\d+\r\n",
    OtherProtocol.AMQP: rb"AMQP[\x00-\x03]",
    # CONNECT, a remaining length, the protocol's name.
    OtherProtocol.MQTT: rb"\x10.{1,4}?\0\x04MQTT|\x10.{1,4}?\0\x06MQIsdp",
    # The greeting of a server (RFC 5321, 4.2; RFC 959).
    OtherProtocol.SMTP_OR_FTP: rb"220[ -][ -~]+(?:\r\n|$)",
    OtherProtocol.SMB: rb"\0...[\xfe\xff]SMB",
    # A load balancer's header before the client's bytes (HAProxy's proxy-protocol.txt, versions 1 and 2).
    OtherProtocol.PROXY: rb"PROXY (?:TCP[46] |UNKNOWN)|\r\n\r\n\0\r\nQUIT\n[\x20\x21]",
    # FCGI_BEGIN_REQUEST: version 1, type 1, a request id, 8 bytes of content: a role, a flag, five zeros.
    OtherProtocol.FASTCGI: rb"\x01\x01..\0\x08.\0\0[\x01-\x03][\0\x01]\0{5}",
}


@cache
def _any() -> re.Pattern[bytes]:
    """All of them, compiled on use: a capture whose connections all begin as Kafka's do needs none."""
    named = (b"(?P<%s>%s)" % (protocol.name.encode(), pattern) for protocol, pattern in _SIGNATURES.items())
    return re.compile(b"|".join(named), re.DOTALL)


def recognize(head: bytes) -> OtherProtocol | None:
    """Return the protocol whose connections begin with `head`, or None."""
    match = _any().match(head)
    return OtherProtocol[str(match.lastgroup)] if match else None

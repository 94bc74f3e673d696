"""What hellos and certificates say of a connection is what OpenSSL says of it, with and without keys."""

import ssl
from datetime import UTC, datetime

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.limits import DEFAULT
from dissector.core.stage import StageChain
from dissector.core.store import Store
from dissector.tls import KeyLog, TlsStage
from dissector.tls.certificates import (
    LARGEST_MESSAGE,
    first_certificate,
    first_compressed_certificate,
    parse_certificate,
)
from dissector.tls.connection import TlsConnection
from dissector.tls.handshake import ClientHello, HandshakeType, parse_client_hello
from dissector.tls.session import TlsSession, TlsState, ja4
from dissector.transport import Transport
from tests.cases import cases
from tests.core.test_stages import Captured, output
from tests.tls.sessions import Ends, Session
from tests.traffic import conversation, exchanges

TLS13, TLS12 = ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2
TURNS = exchanges(3, size=40)


def made(ends: Ends) -> Session:
    for turn in TURNS:
        ends.send(turn.from_client, turn.data)
    return ends.made()


def seen(recorded: Session, *, with_keys: bool, most: int | None = None) -> TlsSession:
    """What is known after so many turns."""
    store, keys = Store(), KeyLog()
    if with_keys:
        keys.add(recorded.key_log)
    stage = TlsStage(store, keys, DEFAULT)
    captured = Captured(conversation(recorded.turns[:most]), store)
    output(StageChain(Transport(store, DEFAULT), stage), captured.batches([]))
    found = stage.session(0)
    assert found is not None
    return found


@cases("with_keys", [True, False])
@cases("client_certificate", [True, False])
@cases("version", [TLS13, TLS12])
def test_a_session_is_as_openssl_says(version: ssl.TLSVersion, client_certificate: bool, with_keys: bool) -> None:
    recorded = made(Ends(version, client_certificate=client_certificate))
    session = seen(recorded, with_keys=with_keys)
    assert session.state is (TlsState.DECRYPTED if with_keys else TlsState.NO_KEYS)
    assert (session.version or "").replace(" ", "v") == recorded.version
    assert (session.server_name, session.is_resumed) == ("broker.example", False)
    in_clear = with_keys or version == TLS12
    server, client = session.server_certificate, session.client_certificate
    assert (server is not None, client is not None) == (in_clear, in_clear and client_certificate)
    assert session.principal == ("CN=ec.example" if client is not None else None)
    if server is not None:
        assert (server.subject, server.issuer) == ("CN=rsa.example", "CN=rsa.example")
        assert server.valid_from == datetime(2020, 1, 1, tzinfo=UTC)
    if version == TLS13:
        assert session.cipher == recorded.suite
    assert session.application_protocol == ("kafka" if in_clear else None)


@cases(("number", "name"), [(1, "zlib"), (2, "brotli"), (3, "zstd")])
def test_compressed_certificates_are_read(number: int, name: str) -> None:
    """As OpenSSL 3.2 sends them, where it has these libraries; this one may be older."""
    recorded = made(Ends(TLS13, client_certificate=True))
    add = TlsConnection.add_message

    def add_compressed(self: TlsConnection, direction: int, kind: int, body: bytes) -> None:
        if kind == HandshakeType.CERTIFICATE:
            kind, body = HandshakeType.COMPRESSED_CERTIFICATE, compressed(number, name, body)
        add(self, direction, kind, body)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TlsConnection, "add_message", add_compressed)
        session = seen(recorded, with_keys=True)
    assert session.server_certificate is not None
    assert (session.server_certificate.subject, session.principal) == ("CN=rsa.example", "CN=ec.example")


def compressed(number: int, name: str, body: bytes) -> bytes:
    data = bytes(getattr(cramjam, name).compress(body))
    return number.to_bytes(2, "big") + len(body).to_bytes(3, "big") + len(data).to_bytes(3, "big") + data


def test_a_certificate_that_decompresses_to_another_size_is_none() -> None:
    certificate = b"\0\0\0\x07\0\0\x04cert"
    message = compressed(1, "zlib", certificate)
    assert first_compressed_certificate(message) == b"cert"
    shorter, longer = (message[:2] + size.to_bytes(3, "big") + message[5:] for size in (10, 12))
    bomb = compressed(3, "zstd", bytes(LARGEST_MESSAGE + 1))
    assert [*map(first_compressed_certificate, (shorter, longer, bomb, b"\0\4" + message[2:], b""))] == [None] * 5


@cases("with_keys", [True, False])
@cases("version", [TLS13, TLS12])
def test_a_resumed_session_is_recognized(version: ssl.TLSVersion, with_keys: bool) -> None:
    first = Ends(version)
    made(first)
    session = seen(made(Ends(version, again=first)), with_keys=with_keys)
    assert session.is_resumed
    assert session.server_certificate is None


def test_what_was_captured_of_a_handshake_is_known() -> None:
    recorded = made(Ends(TLS12))
    session = seen(recorded, with_keys=True, most=1)
    assert (session.state, session.version, session.server_name) == (TlsState.NO_KEYS, None, "broker.example")
    assert session.is_resumed is None


def test_the_fingerprint_is_that_of_the_specification() -> None:
    """The example of FoxIO's description of JA4; GREASE values are left out, and order does not matter."""
    suites = "1301 1302 1303 c02b c02f c02c c030 cca9 cca8 c013 c014 009c 009d 002f 0035 1a1a"
    algorithms = "0403 0804 0401 0503 0805 0501 0806 0601"
    others = "0005 000a 000b 0012 0015 0017 001b 0023 002d 0033 4469 ff01 2a2a"
    extensions = {int(each, 16): b"" for each in others.split()} | {
        0: b"\0\0\0\0\x01a", 16: b"\0\x03\x02h2", 43: bytes.fromhex("06 2a2a 0304 0303"),
        13: len(bytes.fromhex(algorithms)).to_bytes(2, "big") + bytes.fromhex(algorithms),
    }  # fmt: skip
    numbers = tuple(int(each, 16) for each in suites.split())
    assert ja4(ClientHello(0x0303, bytes(32), b"", numbers, extensions)) == "t13d1516h2_8daaf6152771_e5627efa2ab1"


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_survived_as_messages(body: bytes, has_context: bool) -> None:
    found = first_certificate(body, has_context=has_context)
    assert found is None or parse_certificate(found) is None
    first_compressed_certificate(body)
    hello = parse_client_hello(bytes(34) + body)
    assert hello is None or len(ja4(hello).split("_")) == 3


@given(st.data())
def test_a_damaged_certificate_is_none_or_another(data: st.DataObject) -> None:
    recorded = seen(made(Ends(TLS12)), with_keys=False) if not CERTIFICATES else None
    if recorded is not None and recorded.server_certificate_data is not None:
        CERTIFICATES.append(recorded.server_certificate_data)
    whole = bytearray(CERTIFICATES[0])
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    found = parse_certificate(bytes(whole[: data.draw(st.integers(0, len(whole)))]))
    assert found is None or isinstance(found.subject, str)


CERTIFICATES: list[bytes] = []

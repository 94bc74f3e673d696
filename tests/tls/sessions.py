"""TLS sessions made by OpenSSL, in memory: what both ends send, and the key log."""

import datetime
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from tests.traffic import Turn


class Certificate(NamedTuple):
    """A certificate that signs itself, with its key, in one PEM file."""

    path: str


@cache
def folder() -> TemporaryDirectory[str]:
    """A folder for certificates and key logs, removed at the end of the process."""
    return TemporaryDirectory()


@cache
def certificate(kind: str) -> Certificate:
    """A certificate with an RSA or an EC key."""
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
    key = rsa.generate_private_key(65537, 2048) if kind == "rsa" else ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{kind}.example")])
    now = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=20_000))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = Path(folder().name) / f"{kind}.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return Certificate(str(path))


@dataclass
class Session:
    """What was sent, in order, and the key log of the connection."""

    turns: list[Turn] = field(default_factory=list)
    key_log: bytes = b""
    shaken: int = 0
    """Turns of the handshake."""
    sent: dict[bool, bytes] = field(default_factory=lambda: {True: b"", False: b""})
    """Plaintext by side; True is the client's."""
    version: str = ""
    suite: str = ""


class Ends:
    """The two ends of a session."""

    def __init__(
        self, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3, ciphers: str = "", *, key: str = "rsa",
        client_certificate: bool = False, trusted: str = "ec", again: "Ends | None" = None, options: int = 0,
    ) -> None:  # fmt: skip
        self.session = Session()
        self._log = Path(folder().name) / "keys.log"
        if again is not None:
            self.contexts = again.contexts
            self._wrap(again._ends[True].session)
            return
        self._log.unlink(missing_ok=True)
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.contexts = client, server
        for context in (server, client):
            context.minimum_version = context.maximum_version = version
            context.set_ciphers(f"{ciphers or 'ALL'}:@SECLEVEL=0")
            context.options |= options
        server.load_cert_chain(certificate(key).path)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        if client_certificate:
            client.load_cert_chain(certificate("ec").path)
            server.verify_mode = ssl.CERT_REQUIRED
            server.load_verify_locations(certificate(trusted).path)
        client.set_alpn_protocols(["kafka", "h2"])
        server.set_alpn_protocols(["kafka"])
        client.keylog_filename = str(self._log)
        self._wrap(None)

    def _wrap(self, resumed: ssl.SSLSession | None) -> None:
        client, server = self.contexts
        self._in = {True: ssl.MemoryBIO(), False: ssl.MemoryBIO()}
        self._out = {True: ssl.MemoryBIO(), False: ssl.MemoryBIO()}
        self._ends = {
            True: client.wrap_bio(self._in[True], self._out[True], server_hostname="broker.example", session=resumed),
            False: server.wrap_bio(self._in[False], self._out[False], server_side=True),
        }
        self._shake_hands()
        self.session.shaken = len(self.session.turns)

    def send(self, from_client: bool, data: bytes) -> None:
        """One side writes, the other reads."""
        self._ends[from_client].write(data)
        self.session.sent[from_client] += data
        self._flush(from_client)
        assert self._ends[not from_client].read(len(data)) == data

    def made(self) -> Session:
        """The session so far."""
        self.session.key_log = self._log.read_bytes()
        self.session.version = self._ends[True].version() or ""
        self.session.suite = (self._ends[True].cipher() or ("",))[0]
        return self.session

    def _shake_hands(self) -> None:
        for _ in range(4):
            for side in (True, False):
                with suppress(ssl.SSLError):  # it wants more, or refuses
                    self._ends[side].do_handshake()
                self._flush(side)
        for side in (True, False):  # tickets of TLS 1.3
            with suppress(ssl.SSLError):
                self._ends[side].read(1)

    def _flush(self, side: bool) -> None:
        data = self._out[side].read()
        if data:
            self.session.turns.append(Turn(side, data))
            self._in[not side].write(data)


def session(
    turns: list[Turn], version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3, ciphers: str = "", *, key: str = "rsa",
    client_certificate: bool = False, options: int = 0,
) -> Session:  # fmt: skip
    """A session in which these turns are encrypted."""
    ends = Ends(version, ciphers, key=key, client_certificate=client_certificate, options=options)
    for turn in turns:
        for at in range(0, len(turn.data), 1 << 14):
            ends.send(turn.from_client, turn.data[at : at + (1 << 14)])
    return ends.made()

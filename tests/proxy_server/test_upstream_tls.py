"""TLS to brokers: which certificates are taken, and what is said of those that are not."""

import datetime
import socket
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from dissector.proxy_server import UpstreamTls
from tests.frames import request, response
from tests.probe.servers import frame, serving
from tests.proxy_server.proxies import is_closed, proxy


def certificate(folder: Path, name: str) -> str:
    """A file with a certificate of a name, which signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(names)
        .issuer_name(names)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / f"{name}.pem"
    path.write_bytes(made.public_bytes(pem) + private)
    return str(path)


@pytest.mark.parametrize(
    ("tls", "reason"),
    [
        (UpstreamTls(ca="ca", server_name="broker.example"), ""),
        (UpstreamTls(ca="ca", certificate="client", server_name="broker.example"), ""),
        (UpstreamTls(insecure=True), ""),
        (UpstreamTls(server_name="broker.example"), "its certificate is not accepted: self-signed certificate"),
        (UpstreamTls(ca="ca", server_name="other.example"), "its certificate is not accepted: Hostname mismatch"),
    ],
)
def test_a_broker_is_spoken_to_over_tls_and_recorded_in_plain(tmp_path: Path, tls: UpstreamTls, reason: str) -> None:
    files = {name: certificate(tmp_path, name) for name in ("broker.example", "client.example")}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files["broker.example"])
    if tls.certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(files["client.example"])

    def broker(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            frame(secure)
            secure.sendall(response(5, b"over TLS"))

    ca, own = tls.ca and files["broker.example"], tls.certificate and files["client.example"]
    wanted = UpstreamTls(ca, own, "", tls.server_name, tls.insecure)
    with serving(broker) as address, proxy(tmp_path, address, tls=wanted) as between:
        with socket.create_connection(between.address, 10) as client:
            client.settimeout(10)
            asked = request(5, api_key=12, version=0)
            if reason:
                assert is_closed(client)
                between.stop()
                assert [words for words in between.said() if f"{address}: {reason}" in words]
                return
            client.sendall(asked)
            assert client.recv(999) == response(5, b"over TLS")
        assert between.streams() == [(asked, response(5, b"over TLS"))]

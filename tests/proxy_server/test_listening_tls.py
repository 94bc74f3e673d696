"""TLS towards clients: real handshakes on loopback, with a certificate that is made and with one of the user's."""

import contextlib
import os
import socket
import ssl
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from dissector.proxy_server import BrokerAddress, ProxySettings
from dissector.proxy_server.listening_tls import certificate_names
from dissector.proxy_server.local_ca import CA_DAYS, PASSWORD, local_ca
from dissector.proxy_server.settings import ListenTls, UpstreamTls
from dissector.proxy_server.upstream import TlsError
from tests.forked import run_module
from tests.frames import request, response
from tests.needs import needs
from tests.probe.servers import frame, mock_cluster, serving
from tests.proxy_server.proxies import RunningProxy, proxy

HERE = __file__
NO_PEM = "no certificate with its key, in PEM"
MADE = ListenTls()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "kdissect" / "ca"


def answering(connection: socket.socket) -> None:
    """A broker that answers each request."""
    while True:
        try:
            asked = frame(connection)
        except ConnectionError:
            return
        connection.sendall(response(int.from_bytes(asked[4:8], "big")))


def trusting(file: Path | None) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(file) if file else None)


def asked(between: RunningProxy, context: ssl.SSLContext, name: str = "localhost") -> bytes:
    """What a client gets for a request that it sends as soon as the handshake is over."""
    with (
        socket.create_connection(between.address, 10) as plain,
        context.wrap_socket(plain, server_hostname=name) as client,
    ):
        client.sendall(request(7, api_key=12, version=0))
        return client.recv(999)


def said(between: RunningProxy, words: str) -> str:
    """The line about a failed handshake, which comes after the client has gone."""
    deadline, lines = time.monotonic() + 10, list[str]()
    while time.monotonic() < deadline:
        lines += between.said()
        if found := [line for line in lines if words in line]:
            [line] = found
            return line
        time.sleep(0.02)
    raise AssertionError(lines)


def signed(folder: Path, days: int) -> Path:
    """A certificate for localhost that signed itself, with its key, which expires after so many days."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mine")])
    until = datetime.now(UTC) + timedelta(days=days)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(until - timedelta(days=30))
        .not_valid_after(until)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path = folder / f"mine{days}.pem"
    path.write_bytes(made.public_bytes(Encoding.PEM) + private)
    return path


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1", "proxy.example"])
def test_a_client_that_trusts_the_ca_is_served_by_each_name(tmp_path: Path, home: Path, name: str) -> None:
    with (
        serving(answering) as address,
        proxy(tmp_path, address, listen_tls=MADE, advertise="proxy.example") as between,
    ):
        host, port = between.address
        assert host == "proxy.example"
        between.recording.listening[0] = (f"127.0.0.1:{port}", address)
        assert asked(between, trusting(home / "ca.pem"), name) == response(7)
        assert said(between, "listening on").endswith(f"trust {home / 'ca.pem'} (kdissect proxy ca)")


def test_what_is_recorded_is_what_was_said_inside(tmp_path: Path, home: Path) -> None:
    with serving(answering) as address, proxy(tmp_path, address, listen_tls=MADE) as between:
        assert asked(between, trusting(home / "ca.pem")) == response(7)
        assert between.streams() == [(request(7, api_key=12, version=0), response(7))]


@pytest.mark.long
def test_the_end_of_a_connection_over_tls_is_not_worth_a_word(
    tmp_path: Path, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """asyncio warns of a protocol that wants to go on reading behind the end of what is encrypted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(signed(tmp_path, 1))

    def broker(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            frame(secure)
            secure.sendall(response(7))

    for tls, listen_tls in ((None, MADE), (UpstreamTls(insecure=True), None)):
        serve = answering if tls is None else broker
        with (
            serving(serve) as address,
            proxy(tmp_path, address, tls=tls, listen_tls=listen_tls) as between,
            contextlib.ExitStack() as open_ones,
        ):
            client = open_ones.enter_context(socket.create_connection(between.address, 10))
            if listen_tls is not None:
                client = open_ones.enter_context(trusting(home / "ca.pem").wrap_socket(client, server_hostname="::1"))
            client.sendall(request(7, api_key=12, version=0))
            assert client.recv(999) == response(7)
            client.shutdown(socket.SHUT_WR) if tls is None else client.recv(1)
            between.stop()
    assert capfd.readouterr().err == ""


def test_what_comes_with_the_end_of_the_handshake_is_not_lost(tmp_path: Path, home: Path) -> None:
    """A client that needs no answer to go on: its request is in the same segment as the end of the handshake."""
    sent = request(7, api_key=12, version=0)
    with serving(answering) as address, proxy(tmp_path, address, listen_tls=MADE) as between:
        coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = trusting(home / "ca.pem").wrap_bio(coming, going, server_hostname="localhost")
        with socket.create_connection(between.address, 10) as plain:
            plain.settimeout(10)
            while True:
                try:
                    client.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    plain.sendall(going.read())
                    coming.write(plain.recv(1 << 16))
            client.write(sent)
            plain.sendall(going.read())
            answer = b""
            while not answer:
                coming.write(plain.recv(1 << 16))
                try:
                    answer = client.read(999)
                except ssl.SSLWantReadError:
                    continue
        assert answer == response(7)
        assert between.streams() == [(sent, response(7))]


def test_a_certificate_of_the_user_is_shown(tmp_path: Path, home: Path) -> None:
    mine = signed(tmp_path, 5)
    with (
        serving(answering) as address,
        proxy(tmp_path, address, listen_tls=ListenTls(str(mine), str(mine))) as between,
    ):
        assert asked(between, trusting(mine)) == response(7)
        assert not home.exists()


@pytest.mark.parametrize(
    ("days", "trust", "why"), [(5, None, "unknown ca"), (-5, "its own", "certificate expired")], ids=["ca", "expired"]
)
def test_a_client_that_refuses_the_certificate_of_the_user(
    tmp_path: Path, days: int, trust: str | None, why: str
) -> None:
    mine = signed(tmp_path, days)
    with (
        serving(answering) as address,
        proxy(tmp_path, address, listen_tls=ListenTls(str(mine))) as between,
    ):
        for _ in range(2):
            with pytest.raises(ssl.SSLCertVerificationError):
                asked(between, trusting(mine if trust else None))
        line = said(between, "does not take")
        assert line == (
            f"a client on 127.0.0.1 does not take the proxy's certificate ({why}): it has to trust the CA of {mine}"
        )


@pytest.mark.parametrize(("name", "trusts"), [("localhost", False), ("broker.example", True)], ids=["ca", "name"])
def test_a_client_that_refuses_the_made_certificate(tmp_path: Path, home: Path, name: str, trusts: bool) -> None:
    with serving(answering) as address, proxy(tmp_path, address, listen_tls=MADE) as between:
        with pytest.raises(ssl.SSLCertVerificationError):
            asked(between, trusting(home / "ca.pem" if trusts else None), name)
        line = said(between, "does not take")
        assert (
            f"it has to trust {home / 'ca.pem'} (kdissect proxy ca), and connect to 127.0.0.1, localhost or ::1" in line
        )
        assert asked(between, trusting(home / "ca.pem")) == response(7), "others are served"


def plain_kafka(client: socket.socket) -> None:
    client.sendall(request(1, api_key=18, version=3))


def http(client: socket.socket) -> None:
    client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")


def large_frame(client: socket.socket) -> None:
    client.sendall(request(1, api_key=0, version=3, body=bytes(70_000)))


def old_version(client: socket.socket) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError):
        context.wrap_socket(client)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("begin", "words"),
    [
        (plain_kafka, "speaks no TLS, and the proxy listens with --listen-tls: set security.protocol=SSL or SASL_SSL"),
        (large_frame, "speaks no TLS"),
        (http, "speaks no TLS"),
        (old_version, "no TLS: unsupported protocol"),
    ],
)
def test_a_client_that_speaks_something_else_gets_one_line(
    tmp_path: Path, begin: Callable[[socket.socket], None], words: str
) -> None:
    with serving(answering) as address, proxy(tmp_path, address, listen_tls=MADE) as between:
        for _ in range(2):
            with socket.create_connection(between.address, 10) as client:
                client.settimeout(10)
                begin(client)
        said(between, words)
        between.stop()
        assert not [line for line in between.said() if "a client" in line], "each line once"


def test_a_client_that_only_connects_is_not_told_of(tmp_path: Path, home: Path) -> None:
    with serving(answering) as address, proxy(tmp_path, address, listen_tls=MADE) as between:
        socket.create_connection(between.address, 10).close()
        with socket.create_connection(between.address, 10) as waits:
            assert asked(between, trusting(home / "ca.pem")) == response(7)
            between.stop()
            assert waits.recv(9) == b"", "the end of the proxy ends handshakes"
        assert not [line for line in between.said() if "a client" in line]


def test_clients_of_a_cluster_stay_behind_the_proxy(tmp_path: Path, home: Path) -> None:
    from confluent_kafka import Producer

    with mock_cluster(2) as brokers, proxy(tmp_path, brokers[0], listen_tls=MADE) as between:
        settings = {"security.protocol": "SSL", "ssl.ca.location": str(home / "ca.pem"), "log_level": 0}
        producer = Producer({"bootstrap.servers": between.bootstrap} | settings)
        for number in range(20):
            producer.produce("orders", f"order {number}", partition=number % 4)
        assert producer.flush(30) == 0
        assert {broker for _, broker in between.recording.listening} == set(brokers)
        del producer


def test_the_ca_is_made_once_also_by_several_at_a_time(home: Path) -> None:
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(local_ca().pem.read_bytes())) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert sorted(path.name for path in home.iterdir()) == ["ca.key", "ca.p12", "ca.pem"]
    assert stat.S_IMODE((home / "ca.key").stat().st_mode) == 0o600
    assert b"PRIVATE" not in (home / "ca.pem").read_bytes()
    left = local_ca().valid_until - datetime.now(UTC)
    assert CA_DAYS - 1 <= left.days <= CA_DAYS


def test_a_damaged_key_is_one_line(home: Path) -> None:
    ca = local_ca()
    (home / "ca.key").write_bytes(b"what")
    with pytest.raises(TlsError, match=r"ca\.key: damaged; remove it, and a new one is created"):
        local_ca()
    (home / "ca.key").unlink()
    assert local_ca().certificate != ca.certificate
    assert ssl.PEM_cert_to_DER_cert((home / "ca.pem").read_text()) == local_ca().certificate.public_bytes(Encoding.DER)


def test_a_user_without_a_home_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/proc/nonexistent")
    with pytest.raises(TlsError, match=r"local CA: /proc/nonexistent.*: no such file or directory"):
        local_ca()


@pytest.mark.parametrize(
    ("host", "advertise", "names"),
    [
        ("127.0.0.1", "", ["127.0.0.1", "localhost", "::1"]),
        ("0.0.0.0", "proxy.example", ["proxy.example", "localhost", "127.0.0.1", "::1"]),
        ("10.0.0.7", "", ["10.0.0.7", "localhost", "127.0.0.1", "::1"]),
    ],
)
def test_a_made_certificate_has_the_names_of_the_listeners(host: str, advertise: str, names: list[str]) -> None:
    settings = ProxySettings((BrokerAddress("b", 9092),), host=host, advertise=advertise, listen_tls=MADE)
    assert certificate_names(settings) == names
    assert ProxySettings.from_json(settings.as_json()) == settings


def run(*words: str) -> subprocess.CompletedProcess[str]:
    done = run_module("dissector", ["proxy", *words], os.environ | {"NO_COLOR": "1"})
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def test_the_command_shows_what_to_trust(home: Path) -> None:
    done = run("ca")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"PEM          {home / 'ca.pem'}\n" in done.stdout
    assert f"PKCS#12      {home / 'ca.p12'} (password {PASSWORD})\n" in done.stdout
    assert run("ca").stdout == done.stdout


@pytest.mark.long
@pytest.mark.slow
def test_java_reads_what_is_to_be_trusted(home: Path) -> None:
    needs("keytool")
    [line] = [line for line in run("ca").stdout.splitlines() if line.startswith("JKS")]
    subprocess.run(line.removeprefix("JKS").strip(), shell=True, check=True, capture_output=True)
    for name in ("ca.p12", "ca.jks"):
        listed = ["keytool", "-J-Duser.language=en", "-list", "-keystore", str(home / name), "-storepass", PASSWORD]
        done = subprocess.run(listed, capture_output=True, text=True, check=True)
        assert "trustedCertEntry" in done.stdout


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("b", "--listen-cert", "x.pem"), "--listen-cert needs --listen-tls: to speak TLS to clients"),
        (("b", "--listen-tls", "--listen-cert", "/none.pem"), "--listen-cert /none.pem: no such file"),
        (("b", "--listen-tls", "--listen-key", HERE), "--listen-key needs --listen-cert, the certificate of the key"),
        (("b", "--text", "--listen-tls", "--listen-cert", HERE), f"--listen-cert {HERE}: {NO_PEM}"),
    ],
)
def test_options_that_do_not_fit_are_one_line(words: tuple[str, ...], line: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"kdissect: {line}\n"

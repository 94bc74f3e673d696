"""`kdissect live --keylog` of clients that speak TLS on loopback, while their key log grows."""

import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.capture.live.loopback import needs_rights
from tests.cli.test_live import end, lines, live
from tests.probe.servers import frame, serving
from tests.tls.sessions import certificate
from tests.traffic import request, response

pytestmark = pytest.mark.slow
VERSIONS = pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])


def _answer(connection: socket.socket) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate("ec").path)
    with context.wrap_socket(connection, server_side=True) as encrypted:
        while True:
            encrypted.sendall(response(int.from_bytes(frame(encrypted)[4:8], "big")))


@contextlib.contextmanager
def broker() -> Iterator[int]:
    """A server behind TLS; its port."""
    with serving(_answer) as address:
        yield int(address.rpartition(":")[2])


@contextlib.contextmanager
def client(port: int, version: ssl.TLSVersion, key_log: Path) -> Iterator[ssl.SSLSocket]:
    """A connection whose secrets are added to a key log as it begins."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    context.keylog_filename = str(key_log)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as plain, context.wrap_socket(plain) as encrypted:
        yield encrypted


def talk(connection: ssl.SSLSocket, numbers: range) -> None:
    """An exchange for each of these correlation ids, one after the other."""
    for number in numbers:
        connection.sendall(request(number))
        assert int.from_bytes(frame(connection)[:4], "big") == number


def ids(printed: list[str]) -> list[int]:
    """The correlation ids of printed rows."""
    return [int(line.split()[5]) for line in printed if not line.startswith("   No.")]


@pytest.mark.long
@needs_rights
@VERSIONS
def test_rows_come_as_the_key_log_grows_with_each_connection(version: ssl.TLSVersion, tmp_path: Path) -> None:
    key_log = tmp_path / "keys.log"
    key_log.touch()
    with broker() as port, live("-p", str(port), "--keylog", str(key_log)) as process:
        for first in (0, 4, 8):
            with client(port, version, key_log) as connection:
                talk(connection, range(first, first + 4))
                assert ids(lines(process, 4 + (not first))) == [*range(first, first + 4)]
        out, err = end(process)
    assert out == ""
    assert " 0 dropped by the kernel, 12 exchanges, " in err


@needs_rights
@VERSIONS
def test_rows_are_late_but_all_there_where_the_keys_come_after_the_connection(
    version: ssl.TLSVersion, tmp_path: Path
) -> None:
    """The first connection is closed by then, the second open; a line of the log comes in two halves."""
    logged, key_log = tmp_path / "logged", tmp_path / "keys.log"
    key_log.touch()
    with broker() as port, live("-p", str(port), "--keylog", str(key_log), "--format", "json") as process:
        with client(port, version, logged) as connection:
            talk(connection, range(600))
        with client(port, version, logged) as connection:
            talk(connection, range(600, 900))
            data = logged.read_bytes()
            cut = len(data) * 3 // 4
            key_log.write_bytes(data[:cut])
            talk(connection, range(900, 910))
            with key_log.open("ab") as file:
                file.write(data[cut:])
            found = [line.partition('"correlation_id":')[2].partition(",")[0] for line in lines(process, 910)]
        out, _ = end(process)
    assert sorted(map(int, found)) == [*range(910)]
    assert out == ""

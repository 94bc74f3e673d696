"""`pcaps/tls`: real clients at a real broker over TLS. Their values are held to the broker's log by `test_truth`."""

import json
import subprocess
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.cli.render.trees import tree_lines
from dissector.exchange.model import Exchange, ExchangeRow
from dissector.exchange.tls_words import HandshakeField
from dissector.export.exporter import export_rows
from dissector.export.formats import ExportFormat, ExportRequest
from dissector.tls.session import TlsSession
from tests.conftest import ENCRYPTED
from tests.needs import needs
from tests.tui.main_driver import Screen
from tui.app import KDissectApp
from tui.screens.main_screen import MainScreen

MASKED = b"alice-secret"


@pytest.fixture(scope="module", params=ENCRYPTED, ids=lambda path: path.stem)
def recording(request: pytest.FixtureRequest) -> Path:
    path = request.param
    assert isinstance(path, Path)
    return path


def sessions_of(capture: Capture) -> list[TlsSession]:
    return [exchange.tls for exchange in capture.exchanges() if exchange.tls is not None]


@pytest.mark.slow
def test_a_recording_opens_with_its_own_secrets_and_all_of_it(recording: Path) -> None:
    with Capture([str(recording)]) as capture:
        for _ in (*capture.read(), *capture.findings.examine()):
            pass
        rows = [exchange.row for exchange in capture.exchanges()]
        raw_tokens = {"sasl"} if recording.stem.startswith("java-0.10") else set()
        assert {row.kind for row in rows} == {"exchange"} | raw_tokens
        assert not [problem for problem in capture.problems if problem.code in ("key-log", "tls-not-decrypted")]
        version = "TLS 1.2" if "-1.2" in recording.stem else "TLS 1.3"
        for session in sessions_of(capture):
            assert (session.state.value, session.version) == ("decrypted", version)
            has_certificate = "mtls" in recording.stem and not session.is_resumed
            assert session.principal == ("CN=alice,OU=lab" if has_certificate else None)
            if session.server_certificate is not None:
                assert (session.server_certificate.subject, session.server_certificate.host_names) == (
                    "CN=broker", ("127.0.0.1",)
                )  # fmt: skip


@pytest.mark.slow
def test_the_sessions_that_are_resumed_are_those_of_clients_that_come_again(recording: Path) -> None:
    with Capture([str(recording)]) as capture:
        for _ in capture.read():
            pass
        sessions = sessions_of(capture)
    assert {session.is_resumed for session in sessions} == ({False, True} if "resumed" in recording.stem else {False})
    assert not any(session.is_resumed and session.server_certificate for session in sessions)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", ["java-1.3-resumed", "librdkafka-1.3-key-update"])
def test_both_ends_change_their_keys_where_the_recording_is_for_that(name: str) -> None:
    needs("tshark")
    [path] = [each for each in ENCRYPTED if each.stem == name]
    key_updates = ["-d", "tcp.port==9096,tls", "-Y", "tls.handshake.type == 24", "-T", "fields", "-e", "tcp.srcport"]
    done = subprocess.run(["tshark", "-r", str(path), *key_updates], capture_output=True, text=True, check=True)
    senders = [port == "9096" for port in done.stdout.split()]
    assert senders.count(True) > 5
    assert senders.count(False) > 2


@pytest.mark.slow
def test_an_exported_copy_has_the_same_rows_and_problems(recording: Path, tmp_path: Path) -> None:
    path = tmp_path / "copy.pcapng"
    with Capture([str(recording)]) as capture:
        for _ in capture.read():
            pass
        with path.open("wb") as file:
            file.writelines(export_rows(capture, range(len(capture)), ExportRequest(ExportFormat.PCAPNG), len))
        exchanges, problems = list(capture.exchanges()), capture.problems
    with Capture([str(path)]) as copy:
        assert [row_of(each) for each in copy.exchanges()] == [row_of(each) for each in exchanges]
        assert [problem.message for problem in copy.problems] == [problem.message for problem in problems]
        comments = "\n".join(copy.comments.values()).splitlines()
    frames = [message for each in exchanges for message in (each.request, each.response) if message is not None]
    assert len(comments) == len(set(comments)) == len(frames)


def row_of(exchange: Exchange) -> ExchangeRow:
    """Without times and packets: the copy is not encrypted, so that its messages end in others."""
    return exchange.row._replace(
        latency_ns=None, request_transfer_ns=None, wait_ns=None, response_transfer_ns=None, packet=None,
        response_packet=None, info="", severity=None,
    )  # fmt: skip


@pytest.mark.slow
def test_a_login_behind_tls_is_masked(recording: Path) -> None:
    with Capture([str(recording)]) as capture:
        for _ in capture.read():
            pass
        for exchange in capture.exchanges():
            for message in (exchange.request, exchange.response):
                assert message is None or MASKED not in message.data


def without_secrets(recording: Path, folder: Path) -> str:
    data = recording.read_bytes()
    start = int.from_bytes(data[4:8], "little")
    assert int.from_bytes(data[start : start + 4], "little") == SECRETS_BLOCK
    size = int.from_bytes(data[start + 4 : start + 8], "little")
    path = folder / "without.pcapng"
    path.write_bytes(data[:start] + data[start + size :])
    return str(path)


def test_without_its_secrets_a_recording_says_what_it_is(recording: Path, tmp_path: Path) -> None:
    with Capture([without_secrets(recording, tmp_path)], ports=PORTS) as capture:
        for _ in capture.read():
            pass
        rows = [exchange.row for exchange in capture.exchanges()]
        version = "TLS 1.2" if "-1.2" in recording.stem else "TLS 1.3"
        assert rows
        assert all(row.kind == "tls" and row.info.startswith(f"encrypted: {version}, TLS_") for row in rows)
        provenance = json.loads(recording.with_suffix(".provenance.json").read_text())
        assert provenance["scenario"].startswith(version)


@pytest.mark.slow
def test_about_how_many_exchanges_went_by_is_known_without_secrets(recording: Path, tmp_path: Path) -> None:
    """One of a connection is wrong at most, on average."""
    with Capture([str(recording)]) as capture:
        for _ in capture.read():
            pass
        truth = sum(1 for _ in capture.exchanges())
    with Capture([without_secrets(recording, tmp_path)], ports=PORTS) as capture:
        for _ in capture.read():
            pass
        sessions = sessions_of(capture)
        estimates = [session.exchanges for session in sessions]
        assert abs(sum(each or 0 for each in estimates) - truth) <= len(sessions)
        words = [exchange.row.info.rpartition(", about ")[2] for exchange in capture.exchanges()]
        assert words == [f"{each} exchange{'s' if each != 1 else ''}" for each in estimates]


CERTIFICATE = "  client's certificate: CN=alice,OU=lab, signed by itself, valid "


async def test_the_handshake_is_in_the_tree_and_on_the_screen(tmp_path: Path) -> None:
    [path] = [each for each in ENCRYPTED if each.stem == "java-1.2-mtls"]
    with Capture([without_secrets(path, tmp_path)], ports=PORTS) as capture:
        async with KDissectApp(MainScreen(capture)).run_test(size=(120, 40)) as pilot:
            screen = Screen(pilot)
            await pilot.pause()
            await screen.settle()
            found = [node.data for node in screen.fields.root.children]
            assert screen.fields.border_title == "TLS handshake"
        lines = list(tree_lines(capture.exchange(0), capture.start_ns))
    shown = [f"  {field.name}: {field.value}" for field in found if isinstance(field, HandshakeField)]
    assert len(shown) == len(found) > 5
    assert set(shown) <= set(lines)
    assert any(line.startswith(CERTIFICATE) for line in shown)


PORTS, SECRETS_BLOCK = frozenset((9096, 9097, 9100)), 10

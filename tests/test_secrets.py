"""Secrets are masked unless requested: in text, tree, JSON, the bytes on the screen, the Python API."""

import re
import struct
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dissector
from dissector.capture_session import Capture
from dissector.cli.main import app
from dissector.protocol.codec.writer import write
from dissector.protocol.embedded.topics import CLUSTER_METADATA_ID
from dissector.protocol.message import trace
from dissector.protocol.records.batch_writing import batch_bytes
from tests.conftest import CAPTURES, PCAPS

pytestmark = pytest.mark.slow

PASSWORD = b"alice-secret"
LOGINS = [path for path in CAPTURES if "sasl" in path.name]


def shown(path: Path, *options: str) -> str:
    parts = [CliRunner().invoke(app, ["show", str(path), "--format", form, *options])
             for form in ("text", "tree", "json")]  # fmt: skip
    assert {part.exit_code for part in parts} == {0}
    return "".join(part.output for part in parts)


def holds(words: str) -> bool:
    return PASSWORD.decode() in words or PASSWORD.hex() in words


@pytest.mark.parametrize("path", LOGINS, ids=lambda path: path.stem)
def test_no_password_is_shown(path: Path) -> None:
    assert not holds(shown(path))
    with Capture([str(path)]) as capture:
        for exchange in capture.exchanges():
            for message in filter(None, (exchange.request, exchange.response)):
                assert PASSWORD not in message.data
                assert all(PASSWORD not in source.data for source in message.sources)


def test_passwords_are_shown_on_request() -> None:
    path = PCAPS / "java-sasl-plain.pcapng"
    assert holds(shown(path, "--show-secrets"))
    with dissector.open(path, show_secrets=True) as capture:
        frames = [exchange.request.data for exchange in capture.exchanges() if exchange.request is not None]
    assert any(PASSWORD in frame for frame in frames)


def test_the_secrets_of_delegation_tokens_and_scram_credentials_are_masked() -> None:
    """Every hmac and salted password of the recordings, found by asking for secrets, is nowhere without."""
    secrets: set[str] = set()
    for name in ("java-sasl-plain", "java-admin"):
        unmasked = shown(PCAPS / f"{name}.pcapng", "--show-secrets")
        secrets |= set(re.findall(r'"(?:hmac|salted_password)":"([0-9a-f]{16,})"', unmasked))
        assert not any(secret in shown(PCAPS / f"{name}.pcapng") for secret in secrets)
    assert len(secrets) >= 2


def test_credentials_in_the_metadata_log_are_masked_and_the_batch_stays_valid() -> None:
    credential = {"name": "alice", "salt": b"salt", "stored_key": b"stored-key", "server_key": b"server-key"}
    config = {"resource_type": 4, "resource_name": "1", "name": "ssl.key.password", "value": "config-secret"}
    harmless = {"resource_type": 4, "resource_name": "1", "name": "log.dirs", "value": "/var/kafka"}
    records = [{"value": bytes([1, key, 0]) + write(name, 0, values)}
               for key, name, values in ((11, "UserScramCredentialRecord", credential), (4, "ConfigRecord", config),
                                         (4, "ConfigRecord", harmless))]  # fmt: skip
    topic = {"topic_id": CLUSTER_METADATA_ID, "partitions": [{"records": batch_bytes({"records": records})}]}
    body = write("FetchResponse", 17, {"responses": [topic]})
    frame = struct.pack(">iib", len(body) + 5, 9, 0) + body
    shown = dissector.decode_response(frame, api_key=1, api_version=17)
    for secret in (b"stored-key", b"server-key", b"config-secret"):
        assert secret in frame
        assert secret not in shown.data
    assert b"/var/kafka" in shown.data
    assert not shown.findings
    assert not trace(shown.data, shown.layout).findings
    assert len([node for node in shown.tree.walk() if node.note.startswith("masked")]) == 3
    assert dissector.decode_response(frame, api_key=1, api_version=17, show_secrets=True).data == frame


def test_a_single_frame_is_masked() -> None:
    with dissector.open(PCAPS / "java-sasl-plain.pcapng", show_secrets=True) as capture:
        frame = next(e.request.data for e in capture.exchanges() if e.row.api == "SaslAuthenticate" and e.request)
    assert PASSWORD not in dissector.decode_request(frame).data
    assert PASSWORD in dissector.decode_request(frame, show_secrets=True).data

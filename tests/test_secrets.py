"""Secrets are masked unless requested: in text, tree, JSON, the bytes on the screen, the Python API."""

import random
import re
import struct
from collections import deque
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dissector
from dissector.capture_session import Capture
from dissector.cli.every_command import app
from dissector.protocol.codec.writer import write
from dissector.protocol.embedded.topics import CLUSTER_METADATA_ID
from dissector.protocol.message import trace
from dissector.protocol.records.from_json import batch_bytes
from tests.cases import cases
from tests.conftest import CAPTURES, PCAPS
from tests.traffic import Turn, capture_of, conversation, response
from tools.fuzz.leaks import Pieces, faces, leak, pieces, rare_faces, screen_faces
from tools.fuzz.logins import login_file
from tools.fuzz.seeds import framed

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
    for secret in (b"salt", b"stored-key", b"server-key", b"config-secret"):
        assert secret in frame
        assert secret not in shown.data
    assert b"/var/kafka" in shown.data
    assert not shown.findings
    assert not trace(shown.data, shown.layout).findings
    assert len([node for node in shown.tree.walk() if node.note.startswith("masked")]) == 4
    assert dissector.decode_response(frame, api_key=1, api_version=17, show_secrets=True).data == frame


def test_a_single_frame_is_masked() -> None:
    with dissector.open(PCAPS / "java-sasl-plain.pcapng", show_secrets=True) as capture:
        frame = next(e.request.data for e in capture.exchanges() if e.api == "SaslAuthenticate" and e.request)
    assert PASSWORD not in dissector.decode_request(frame).data
    assert PASSWORD in dissector.decode_request(frame, show_secrets=True).data


LOGINS_CHANGED = 30


def test_no_part_of_a_secret_is_shown_of_changed_logins(tmp_path: Path) -> None:
    """Conversations with secrets, cut, damaged (in their messages, TCP's sequence numbers, the headers of packets),
    lost in part, split, of other versions and APIs, in envelopes: six bytes of a secret are in no face. `make fuzz
    FUZZ="--kind secrets"` draws as many as there is time for; `python -m tools.fuzz.leak_run` changes each recording in
    turn, and looks at the screen too.

    What this does not promise, as nobody could tell it from plain traffic:
      * bytes of a secret that damage has copied to a place where none belong, as into a topic's name;
      * a request whose API key damage has made that of an API without secrets, if it can be read to its end as such a
        request; on a connection without other secrets what is behind it is shown as well;
      * the fields before the cut of a response that was paired with the request of another one, because its own was
        lost and the client uses correlation ids again."""
    path = tmp_path / "login.pcap"
    for number in range(LOGINS_CHANGED):
        data, secrets = login_file(random.Random(f"login {number}"), recorded=0.02)
        path.write_bytes(data)
        ways = [rare_faces] * (number % 5 == 0) + [screen_faces] * (number % 50 == 0)
        with Capture([str(path)]) as capture:
            deque(capture.read(), maxlen=0)
            assert not leak(capture, secrets, *ways), number


FACES = ("lines of json", "JSON", "tree", "bytes", "source", "transcript", "table", "export pytest", "screen")


@pytest.mark.long
def test_the_search_for_secrets_finds_what_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "login.pcap"
    found: set[str] = set()
    for number in range(8):
        data, secrets = login_file(random.Random(f"login {number}"), recorded=0)
        wanted, slowly = Pieces(secrets), [piece for each in secrets for piece in pieces(each)]
        path.write_bytes(data)
        with Capture([str(path)], show_secrets=True) as capture:
            deque(capture.read(), maxlen=0)
            for way in (faces, rare_faces, screen_faces)[: 3 if number < 1 else 2]:
                for name, shown in way(capture):
                    piece = wanted.first_in(shown)
                    assert (piece is not None) == any(each in shown for each in slowly)
                    found |= {name} if piece is not None else set()
    assert not [name for name in found if "--redact" in name]
    assert {face for face in FACES if any(name.startswith(face) for name in found)} == set(FACES)


HIDDEN = b"aB3dE6gH9jK2mN5p"


def request_of(key: int, version: int, body: bytes) -> bytes:
    header = struct.pack(">hhih", key, version, 7, 1) + b"c"
    return struct.pack(">i", len(header) + len(body)) + header + body


ENVELOPE = {"request_principal": None, "client_host_address": b"1234"}
ALTERED = write("AlterConfigsRequest", 1, {"resources": [
    {"resource_type": 4, "resource_name": "1", "configs": [{"name": "ssl.key.password", "value": HIDDEN.decode()}]},
]})  # fmt: skip
INNER = request_of(33, 1, ALTERED)[4:]
WRAPPED = framed("request", 58, 0, write("EnvelopeRequest", 0, ENVELOPE | {"request_data": INNER}))
NOT_UNDERSTOOD = {
    "a newer version": request_of(36, 3, b"\0" + struct.pack(">i", len(HIDDEN)) + HIDDEN),
    "a newer version of configs": request_of(33, 4, b"\0" + ALTERED),
    "an older version": request_of(33, -1, ALTERED),
    "an unknown API": request_of(3_000, 0, HIDDEN),
    "cut": (whole := request_of(33, 1, ALTERED))[:-4],
    "bytes behind its end": struct.pack(">i", len(whole) - 4 + 16) + whole[4:] + HIDDEN,
    "an envelope": WRAPPED,
    "an envelope, cut": WRAPPED[:-9],
    "an envelope in an envelope": framed(
        "request", 58, 0, write("EnvelopeRequest", 0, ENVELOPE | {"request_data": WRAPPED[4:]})
    ),
    "an envelope around a part": framed(
        "request", 58, 0, write("EnvelopeRequest", 0, ENVELOPE | {"request_data": INNER[:-2]})
    ),
    "a token without its handshake": request_of(36, 0, struct.pack(">i", 7 + len(HIDDEN)) + b"\0alice\0" + HIDDEN),
}


@cases("frame", NOT_UNDERSTOOD.values(), ids=NOT_UNDERSTOOD.keys())
def test_what_is_not_understood_is_masked_as_a_whole(frame: bytes) -> None:
    shown = dissector.decode_request(frame)
    assert HIDDEN[:10] in frame
    assert HIDDEN[:6] not in shown.data
    assert len(shown.data) == len(frame)
    words = repr((shown.header, shown.decoded_body, shown.rest, [(n.value, n.note) for n in shown.tree.walk()]))
    assert HIDDEN[:6].decode() not in words
    assert HIDDEN[:6].hex() not in words
    assert "masked" in words or any(finding.code == "masked" for finding in shown.findings)
    assert dissector.decode_request(frame, show_secrets=True).data == frame


@cases(("name", "value", "is_shown"), [
    ("log.retention.ms", "1000", True),
    ("listener.name.external.ssl.keystore.location", "/keys", True),
    ("ssl.keystore.key", HIDDEN.decode(), False),
    ("ssl.key.pass", HIDDEN.decode(), False),
    ("license.token", HIDDEN.decode(), False),
    ("basic.auth.user.info", HIDDEN.decode(), False),
    ("schema.registry.api.key", HIDDEN.decode(), False),
    ("listener.name.external.plain.sasl.jaas.config", HIDDEN.decode(), False),
    ("sasl.oauthbearer.token.endpoint.url", f"https://a:{HIDDEN.decode()}@b", False),
    ("sasl.oauthbearer.token.endpoint.url", f"https://b/token?client_secret={HIDDEN.decode()}", False),
    ("sasl.oauthbearer.jwks.endpoint.url", f"https://b/keys?api-key={HIDDEN.decode()}&v=1", False),
    ("sasl.oauthbearer.token.endpoint.url", f"https://b/token/{HIDDEN.decode()}?scope=kafka", True),
    ("bootstrap.servers", f"{HIDDEN.decode()}:9092,b:9093", True),
    ("controller.quorum.voters", f"1@{HIDDEN.decode()}:9093,2@b:9093", True),
    ("metric.reporters", f"a.b.C,user:{HIDDEN.decode()}@proxy", False),
])  # fmt: skip
def test_a_config_is_shown_only_if_kafka_defines_it_and_it_is_no_password(
    name: str, value: str, is_shown: bool
) -> None:
    config = {"name": name, "value": value, "synonyms": [{"name": name, "value": value, "source": 4}]}
    sensitive = config | {"name": "log.dirs", "is_sensitive": True, "synonyms": []}
    results = [{"resource_type": 4, "resource_name": "1", "configs": [config, sensitive]}]
    frame = dissector.encode_response("DescribeConfigs", 4, {"results": results})
    shown = dissector.decode_response(frame, api_key=32, api_version=4)
    assert frame.count(value.encode()) == 3
    assert shown.data.count(value.encode()) == (2 if is_shown else 0)
    assert not shown.findings


@cases(("words", "is_shown"), [
    (f"Invalid value {HIDDEN.decode()} for configuration ssl.key.password: too short", False),
    (f"Invalid value {HIDDEN.decode()} for configuration retention.ms: Not a number", True),
    (f"Invalid value {HIDDEN.decode()} for configuration retention.ms: x for configuration log.dirs", True),
    (f"Invalid value {HIDDEN.decode()} for configuration ssl.key.password: x for configuration log.dirs", False),
    (f"Invalid value {HIDDEN.decode()} for configuration vault.pwd. Or configuration retention.ms: no", False),
    (f"Invalid value x required password=\"{HIDDEN.decode()}\"; for configuration retention.ms: no", False),
    (f"Invalid value https://a/?sas={HIDDEN.decode()} for configuration retention.ms: no", False),
    (f"Invalid value {HIDDEN.decode()} for configuration sasl.oauthbearer.token.endpoint.url: no", True),
    (f"Invalid value {HIDDEN.decode()} for configuration password.encoder.iterations: no", True),
    (f"Number of partitions {HIDDEN.decode()}", False),
    (f"Replication factor: {HIDDEN.decode()} larger than available brokers: 1.", False),
    ("Replication factor: 3 larger than available brokers: 1.", True),
    ("Number of partitions must be larger than 0, or -1 to use the default value.", True),
    ("Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because only 1 "
     "broker(s) are registered.", True),
    (f"{HIDDEN.decode()} is against our policy", False),
    ("Topic 'orders' already exists.", True),
])  # fmt: skip
def test_an_error_message_is_shown_only_if_it_quotes_no_secret(words: str, is_shown: bool) -> None:
    body = {"topics": [{"name": "orders", "error_code": 40, "error_message": words}]}
    frame = dissector.encode_response("CreateTopics", 5, body)
    assert (words.encode() in dissector.decode_response(frame, api_key=19, api_version=5).data) == is_shown


@cases("codec", range(1, 5))
def test_a_compressed_batch_of_the_metadata_log_with_a_secret_is_masked_as_a_whole(codec: int) -> None:
    config = {"resource_type": 4, "resource_name": "1", "name": "ssl.key.password", "value": HIDDEN.decode()}
    for config["name"], is_shown in (("ssl.key.password", False), ("log.dirs", True)):
        value = bytes([1, 4, 0]) + write("ConfigRecord", 0, config)
        batch = batch_bytes({"records": [{"value": value}], "attributes": codec})
        topic = {"topic_id": CLUSTER_METADATA_ID, "partitions": [{"records": batch}]}
        frame = dissector.encode_response("Fetch", 17, {"responses": [topic]})
        shown = dissector.decode_response(frame, api_key=1, api_version=17)
        assert any(HIDDEN in source.data for source in shown.sources) == is_shown
        [found] = shown.decoded_body["responses"][0]["partitions"][0]["records"]["batches"]
        assert ("masked" in found) != is_shown
        assert found["crc_valid"]
        assert not shown.traced.findings


def test_bytes_without_a_frame_are_masked_where_the_connection_logs_in(tmp_path: Path) -> None:
    handshake = request_of(17, 1, write("SaslHandshakeRequest", 1, {"mechanism": "PLAIN"}))
    metadata = request_of(3, 1, struct.pack(">i", -1))
    for first, opened, is_shown in ((metadata, True, True), (metadata, False, False), (handshake, True, False)):
        turns = [Turn(True, first), Turn(False, response(7)), Turn(True, b"\xff\xff\xff\xff" + HIDDEN)]
        path = capture_of(tmp_path, conversation(turns, handshake=opened))
        with Capture([path]) as capture:
            deque(capture.read(), maxlen=0)
            [row] = [each for each in capture.exchanges() if each.row.kind == "unparsed"]
            assert row.request is not None
            assert (HIDDEN in row.request.data) == is_shown

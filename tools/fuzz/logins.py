"""Conversations with secrets, which a hostile network, a broken disk or a newer Kafka has changed.

Each secret is random letters, so a part of it that is found anywhere is no chance.

What nobody can tell from plain traffic is left out: an API key that damage made that of an API without secrets, as
whose request the bytes can be read to their end; correlation ids that are used again where the request is missing to
which a response belongs; a secret's bytes in a place to which damage has copied them.
"""

import random
import string
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from dissector.capture import open_capture
from dissector.capture_session import Capture
from dissector.core.store import Store
from dissector.protocol.codec.writer import write
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.embedded.secrets import may_hold_secrets
from dissector.protocol.embedded.topics import CLUSTER_METADATA, CLUSTER_METADATA_ID
from dissector.protocol.masked_reasons import MALFORMED
from dissector.protocol.message import read
from dissector.protocol.message_layout import request_layout
from dissector.protocol.records.from_json import batch_bytes
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api
from dissector.protocol.wire import EncodeError
from tests.traffic import Packet, Turn, conversation, ethernet, lossy, pcap, reordered, resegmented
from tools.fuzz.captures import login_changed, packets_changed
from tools.fuzz.leaks import LEAST
from tools.fuzz.records_with_secrets import CARRIERS, letters, metadata_records, records_field, user_records
from tools.fuzz.seeds import PCAPS, framed

LETTERS: Final = string.ascii_letters + string.digits
SIZES: Final = (12, 20, 44, 64)
BASE64_SIZE: Final = 44
RECORDED: Final = 0.1
PASSWORDS: Final = {b"alice-secret": b"qXw8Tn3KzL5v", b"not-her-secret": b"mWq7Rb2YtJx4Gd"}
"""Of the recordings, and what stands in their place."""


@dataclass(frozen=True, slots=True)
class Said:
    """What one side says in one go, and which API it is of, if any."""

    from_client: bool
    data: bytes
    key: int = -1
    version: int = 0


@dataclass(frozen=True, slots=True)
class Login:
    """A conversation, and the secrets in it."""

    said: tuple[Said, ...]
    secrets: tuple[bytes, ...]
    stays: bool = False
    """Whether secrets are told by names beside them, which must stay: there is no damage then."""


def secret(chance: random.Random, size: int = 0) -> bytes:
    return "".join(chance.choices(LETTERS, k=size or chance.choice(SIZES))).encode()


def exchange(key: int, version: int, request: dict[str, Any], response: dict[str, Any]) -> tuple[Said, Said]:
    known = api(key)
    assert known is not None
    return (
        Said(True, framed("request", key, version, write(known.request, version, request)), key, version),
        Said(False, framed("response", key, version, write(known.response, version, response)), key, version),
    )


VERSIONS: Final = exchange(ApiKey.API_VERSIONS, 3, {"client_software_name": "java", "client_software_version": "4"}, {})
METADATA: Final = exchange(ApiKey.METADATA, 12, {"topics": None}, {})


def _tokens(mechanism: str, tokens: Sequence[tuple[bytes, bytes]], chance: random.Random) -> tuple[Said, ...]:
    """A login; raw after SaslHandshake version 0, else in SaslAuthenticate."""
    raw = chance.random() < 0.3
    said = list(exchange(ApiKey.SASL_HANDSHAKE, 0 if raw else 1, {"mechanism": mechanism}, {"mechanisms": [mechanism]}))
    for asked, answered in tokens:
        if raw:
            said += [Said(True, _sized(asked)), Said(False, _sized(answered))]
        else:
            version = chance.choice((0, 1, 2))
            said += exchange(ApiKey.SASL_AUTHENTICATE, version, {"auth_bytes": asked}, {"auth_bytes": answered})
    return tuple(said)


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def plain(chance: random.Random) -> Login:
    word = secret(chance)
    token = chance.choice((b"", b"bob", b"alice")) + b"\0alice\0" + word
    token = chance.choice((token, token, token + b"\0", token.replace(b"alice", b"", 1), b"\0" + token))
    return Login(_tokens(chance.choice(("PLAIN", "plain", "SCRAM-SHA-256", "?")), [(token, b"")], chance), (word,))


def scram(chance: random.Random) -> Login:
    proof, verifier = secret(chance, BASE64_SIZE), secret(chance, BASE64_SIZE)
    extra = chance.choice((b"", b"", b",x=y", b","))
    tokens = [(b"n,,n=alice,r=abc", b"r=abcdef,s=c2FsdA==,i=4096"),
              (b"c=biws,r=abcdef,p=" + proof + extra, b"v=" + verifier)]  # fmt: skip
    return Login(_tokens(chance.choice(("SCRAM-SHA-512", "PLAIN")), tokens, chance), (proof, verifier))


def oauth(chance: random.Random) -> Login:
    word, other = secret(chance), secret(chance)
    name = chance.choice((b"auth=Bearer ", b"auth=Basic ", b"AUTH=Bearer ", b"auth="))
    token = b"n,,\x01host=kafka\x01" + name + word + b"\x01password=" + other + b"\x01\x01"
    return Login(_tokens("OAUTHBEARER", [(token, b"")], chance), (word, other))


def other_mechanism(chance: random.Random) -> Login:
    word = secret(chance)
    token = chance.choice((b'{"version":"2020_10_22","x-amz-signature":"' + word + b'"}', word, b"alice:" + word))
    return Login(_tokens(chance.choice(("AWS_MSK_IAM", "LDAP", "GSSAPI")), [(token, b"")], chance), (word,))


URLS: Final = (
    "https://bob:{}@example.com/x?y=z", "https://example.com/?token={}", "jdbc:mysql://h/d?user=u&password={}",
    "https://h/o?client_id=a&client_secret={}&scope=b", "amqp://a:{}@h", "http://h/#access_token={}",
)  # fmt: skip
REFUSALS: Final = (
    "Invalid value {value} for configuration {name}: bad", "Invalid value '{value}' for configuration \"{name}\"",
    "{name}={value}", "{name}: \"{value}\"", "{name} -> [{value}]", "Could not parse {value} ({name})",
    'Invalid value {{"{name}": "{value}"}} for configuration log.dirs', "Unknown: <{name}>{value}</{name}>",
    "Invalid value {value} for configuration {name}: Invalid value x for configuration log.dirs: bad",
)  # fmt: skip


def configs(chance: random.Random) -> Login:
    word = secret(chance)
    name = chance.choice(("ssl.key.password", "license.token", "x.api.key", "listener.name.a.plain.sasl.jaas.config"))
    name = chance.choice((name, name, name.upper(), name.title(), name.replace(".", "_"), name.replace(".", "-")))
    value = word.decode()
    config = {"name": name, "value": value}
    if chance.random() < 0.2:
        config = {"name": "metric.reporter.url", "value": chance.choice(URLS).format(value)}
    broker = {"resource_type": 4, "resource_name": "1"}
    resources = {"resources": [broker | {"configs": [config, {"name": "log.dirs", "value": "/x"}]}]}
    words = chance.choice(REFUSALS).format(value=value, name=name)
    refused = {"responses": [{"error_code": 40, "error_message": words}]}
    described = {"results": [broker | {"configs": [config | {"synonyms": [config | {"source": 4}]}]}]}
    topic = {"name": "t", "configs": [config]}
    made: tuple[int, dict[str, Any], dict[str, Any]] = chance.choice((
        (ApiKey.ALTER_CONFIGS, resources, refused),
        (ApiKey.INCREMENTAL_ALTER_CONFIGS, resources, refused),
        (ApiKey.DESCRIBE_CONFIGS, {"resources": []}, described),
        (ApiKey.CREATE_TOPICS, {"topics": [topic]}, {"topics": [{"name": "t", "error_message": word.decode()}]}),
    ))  # fmt: skip
    return Login(_some_version(*made, chance), (word,))


def credentials(chance: random.Random) -> Login:
    word = secret(chance)
    credential = {"name": "alice", "mechanism": 2, "iterations": 4096, "salt": b"salt", "salted_password": word}
    token = {"token_id": "abc", "hmac": word}
    made: tuple[int, dict[str, Any], dict[str, Any]] = chance.choice((
        (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, {"deletions": [], "upsertions": [credential]}, {"results": []}),
        (ApiKey.CREATE_DELEGATION_TOKEN, {"renewers": []}, token | {"principal_type": "User", "principal_name": "a"}),
        (ApiKey.RENEW_DELEGATION_TOKEN, {"hmac": word, "renew_period_ms": 1}, {}),
        (ApiKey.EXPIRE_DELEGATION_TOKEN, {"hmac": word, "expiry_time_period_ms": 1}, {}),
        (ApiKey.DESCRIBE_DELEGATION_TOKEN, {"owners": []}, {"tokens": [token]}),
    ))  # fmt: skip
    return Login(_some_version(*made, chance), (word,))


def _some_version(
    key: int, request: dict[str, Any], response: dict[str, Any], chance: random.Random
) -> tuple[Said, ...]:
    known = api(key)
    assert known is not None
    said = None
    while said is None:
        with suppress(EncodeError):  # not every version has all the fields
            said = exchange(key, chance.choice(list(known.versions)), request, response)
    for _ in range(chance.choice((0, 0, 1, 2))):
        said = _enveloped(said)
    return said


def _enveloped(said: tuple[Said, Said]) -> tuple[Said, Said]:
    asked, answered = said
    request = {"request_data": asked.data[4:], "request_principal": None, "client_host_address": b"1234"}
    return exchange(ApiKey.ENVELOPE, 0, request, {"response_data": answered.data[4:], "error_code": 0})


def metadata_log(chance: random.Random) -> Login:
    one, other = secret(chance), secret(chance)
    credential = {"name": "alice", "salt": b"salt", "stored_key": one, "server_key": one[::-1]}
    config = {"resource_type": 4, "resource_name": "1", "name": "ssl.keystore.key", "value": other.decode()}
    messages = ((11, "UserScramCredentialRecord", credential), (4, "ConfigRecord", config))
    records = [{"value": bytes([1, key, 0]) + write(name, 0, values)} for key, name, values in messages]
    batch = batch_bytes({"records": records, "attributes": chance.choice((0, 1, 2, 3, 4))})
    partition = {"records": batch}
    if chance.random() < 0.3:
        snapshot = {"topics": [{"name": CLUSTER_METADATA, "partitions": [{"unaligned_records": batch}]}]}
        said = exchange(ApiKey.FETCH_SNAPSHOT, 0, {"topics": [{"name": CLUSTER_METADATA, "partitions": []}]}, snapshot)
    else:
        version = chance.choice((12, 13, 17))
        asked = {"topic": CLUSTER_METADATA} if version < 13 else {"topic_id": CLUSTER_METADATA_ID}
        request = {"topics": [asked | {"partitions": [{"partition": 0}]}]}
        said = exchange(ApiKey.FETCH, version, request, {"responses": [asked | {"partitions": [partition]}]})
    return Login(said, (one, one[::-1], other))


def records(chance: random.Random) -> Login:
    """Records with secrets where nobody expects them: of users, and of the metadata log in any topic."""
    one, other = letters(chance), letters(chance)
    of_log = chance.random() < 0.4
    found = metadata_records(one, other) if of_log else user_records(one, other, chance)
    field = records_field(found, chance)
    key = chance.choice(list(CARRIERS))
    said = exchange(key, *CARRIERS[key](field, of_log=of_log and chance.random() < 0.5, chance=chance))
    return Login(said, (one.encode(), other.encode()), stays=True)


def segment_file(chance: random.Random) -> tuple[bytes, tuple[bytes, ...]]:
    """A log segment with such records, or a piece of one, and its secrets."""
    one, other = letters(chance), letters(chance)
    found = metadata_records(one, other) if chance.random() < 0.5 else user_records(one, other, chance)
    before = records_field([{"value": b"x"}], chance) if chance.random() < 0.2 else b""
    return before + records_field(found, chance), (one.encode(), other.encode())


LOGINS: Final[Sequence[Callable[[random.Random], Login]]] = (
    plain, scram, oauth, other_mechanism, configs, credentials, metadata_log, records,
)  # fmt: skip


def _other_version(each: Said, chance: random.Random) -> Said:
    """A request of a version that nobody knows yet, perhaps with a field more at its end."""
    known = api(each.key)
    if known is None or not each.from_client:
        return each
    version = chance.choice((known.versions.high + 1, known.versions.high + 2, max(0, known.versions.low - 1)))
    data = each.data[:6] + version.to_bytes(2, "big") + each.data[8:]
    more = chance.randbytes(chance.choice((0, chance.randint(1, 9))))
    return replace(each, data=_resized(data + more))


def _resized(data: bytes) -> bytes:
    return (len(data) - 4).to_bytes(4, "big") + data[4:]


def _flipped(each: Said, chance: random.Random) -> Said:
    """One to three bytes changed behind the API key; a response's anywhere behind its size."""
    out = bytearray(each.data)
    first = 6 if each.key >= 0 and each.from_client else 4
    for _ in range(chance.randint(1, 3)):
        if first < len(out):
            at = chance.randrange(first, len(out))
            out[at] = chance.choice((out[at] ^ 1 << chance.randrange(8), chance.randrange(256), 0, 1, 255))
    return replace(each, data=bytes(out))


def _wrong_size(each: Said, chance: random.Random) -> Said:
    size = int.from_bytes(each.data[:4], "big") + chance.choice((-20, -9, -1, 1, 3, 40, 90, 200))
    return replace(each, data=max(0, size).to_bytes(4, "big") + each.data[4:])


def _cut(each: Said, chance: random.Random) -> Said:
    data = each.data[: chance.randrange(4, len(each.data) + 1)]
    return replace(each, data=_resized(data) if chance.random() < 0.5 else data)


def _other_api(each: Said, chance: random.Random) -> Said:
    """A request with another API key, unless it could be one of that API."""
    if each.key < 0 or not each.from_client:
        return each
    key = chance.choice((each.key ^ 1 << chance.randrange(16), chance.randrange(100)))
    changed = replace(each, data=each.data[:4] + key.to_bytes(2, "big") + each.data[6:])
    return each if _reads_to_its_end(key, each.version, changed.data) else changed


def _reads_to_its_end(key: int, version: int, data: bytes) -> bool:
    """Whether a frame is a whole request of that API, or a whole one stands at its beginning."""
    layout = request_layout(key, version, data)
    if layout.body is None or may_hold_secrets(layout.body, data, EMPTY_CONTEXT):
        return False
    found = read(data, layout)
    return bool(found.body) and MALFORMED not in {finding.code for finding in found.findings}


def _numbered(said: Sequence[Said]) -> list[Said]:
    """The same with a correlation id of its own for each request."""
    out: list[Said] = []
    number = 7
    for each in said:
        at = 8 if each.from_client else 4
        number += each.from_client and each.key >= 0
        is_frame = each.key >= 0
        out.append(
            replace(each, data=each.data[:at] + number.to_bytes(4, "big") + each.data[at + 4 :]) if is_frame else each
        )
    return out


CHANGES: Final = (_other_version, _other_api, _flipped, _flipped, _wrong_size, _cut)


def login_file(chance: random.Random, recorded: float = RECORDED) -> tuple[bytes, tuple[bytes, ...]]:
    """A capture file of a changed conversation, made or recorded, and the secrets that nobody may see."""
    return _recorded_file(chance) if chance.random() < recorded else _made_file(chance)


def _made_file(chance: random.Random) -> tuple[bytes, tuple[bytes, ...]]:
    login = chance.choice(LOGINS)(chance)
    said = [*(VERSIONS if chance.random() < 0.7 else ()), *login.said, *(METADATA if chance.random() < 0.7 else ())]
    is_numbered = chance.random() < 0.8
    said = _numbered(said) if is_numbered else said
    for _ in range(0 if login.stays else chance.choice((0, 1, 1, 2, 3))):
        at = chance.randrange(len(said))
        said[at] = chance.choice(CHANGES)(said[at], chance)
    for _ in range(0 if login.stays else chance.choice((0, 0, 0, 1, 2))):
        at = chance.randrange(len(said))
        said = [each for number, each in enumerate(said) if number != at or (each.from_client and not is_numbered)]
        said = said or list(login.said)
    turns = [Turn(each.from_client, each.data) for each in said if each.data]
    packets = conversation(turns, handshake=chance.random() < 0.7)
    for change, share in ((resegmented, 0.3), (lossy, 0 if login.stays else 0.2), (reordered, 0.1)):
        packets = change(packets, chance) if chance.random() < share else packets
    if login.stays:
        return pcap([ethernet(packet) for packet in packets]), login.secrets
    return packets_file(packets, chance), login.secrets


Recording = tuple[list[bytes], tuple[bytes, ...]]


@cache
def recordings() -> list[Recording]:
    """The packets of recordings with secrets, and these: such as have no word that is none."""
    found = []
    for path in sorted(PCAPS.glob("*.pcapng")):
        if any(word in path.name for word in ("sasl", "java-admin", "kraft")):
            [batch] = open_capture(str(path), Store()).batches()
            places = zip(batch.offset.tolist(), batch.captured.tolist(), strict=True)
            packets = [_with_letters(batch.data[at : at + size].tobytes()) for at, size in places]
            found.append((packets, tuple(map(_with_letters, _secrets_of(path)))))
    return [(packets, secrets) for packets, secrets in found if secrets]


def _with_letters(data: bytes) -> bytes:
    """Bytes with letters in place of the passwords, which are words that also stand elsewhere."""
    for word, other in PASSWORDS.items():
        data = data.replace(word, other)
    return data


def _secrets_of(path: Path) -> set[bytes]:
    secrets: set[bytes] = set()
    with Capture([str(path)], show_secrets=True) as capture:
        for exchange in capture.exchanges():
            for message in filter(None, (exchange.request, exchange.response)):
                spans = [node.secret for node in message.tree.walk() if node.secret and node.source == 0]
                secrets |= {message.data[start:end] for start, end in spans}
    return {each for each in secrets if len(each) >= LEAST and len(set(each)) > LEAST - 2}


def _recorded_file(chance: random.Random) -> tuple[bytes, tuple[bytes, ...]]:
    return recording_changed(chance.choice(recordings()), chance)


def recording_changed(recording: Recording, chance: random.Random) -> tuple[bytes, tuple[bytes, ...]]:
    """A capture file of a changed recording, and its secrets."""
    packets, secrets = recording
    return pcap(login_changed(packets, chance), snaplen=chance.choice((262144, 262144, 96))), secrets


def packets_file(packets: list[Packet], chance: random.Random) -> bytes:
    wire = packets_changed([ethernet(packet) for packet in packets], chance, chance.choice((0, 0, 0, 1, 2)))
    if wire and chance.random() < 0.2:
        wire = wire[chance.randrange(len(wire)) :]
    return pcap(wire, snaplen=chance.choice((262144, 262144, 262144, 96, 120)))

"""Captures with TLS connections: with their keys they have the rows of their plain twins, and say what is missing."""

import dataclasses
import ssl
import struct
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dissector.capture import CaptureError
from dissector.capture.files import GrowingFile
from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS
from tests.tls.sessions import Ends, Session, session
from tests.traffic import ACK, FIN, Packet, block, capture_of, conversation, ethernet, exchanges, pcapng

SECRETS, TLS_KEYS = 10, 0x544C534B
TURNS = exchanges(6, pipelined=2, size=40)
OF_ANOTHER = b"CLIENT_RANDOM " + b"00" * 32 + b" " + b"11" * 48 + b"\n"


@pytest.fixture(scope="module")
def made() -> Session:
    return session(TURNS)


@pytest.fixture
def plain(tmp_path: Path) -> str:
    folder = tmp_path / "plain"
    folder.mkdir()
    return capture_of(folder, conversation(TURNS))


def rows(path: str, *key_logs: str) -> list[tuple[object, ...]]:
    """What the rows of a capture say, without their times."""
    with Capture([path], key_logs=key_logs) as capture:
        for _ in capture.read():
            pass
        assert not capture.problems
        return [(row.kind, row.api, row.version, row.correlation_id, row.request_size, row.response_size, row.info)
                for row in (exchange.row for exchange in capture.exchanges())]  # fmt: skip


def key_log(folder: Path, data: bytes) -> str:
    path = folder / "keys.log"
    path.write_bytes(data)
    return str(path)


def secrets_block(data: bytes) -> bytes:
    return block("<", SECRETS, struct.pack("<II", TLS_KEYS, len(data)) + data + bytes(-len(data) % 4))


def test_with_its_keys_a_capture_has_the_rows_of_its_plain_twin(made: Session, plain: str, tmp_path: Path) -> None:
    path = capture_of(tmp_path, conversation(made.turns))
    assert [kind for kind, *_ in rows(path)] == ["tls"]
    assert rows(path, key_log(tmp_path, made.key_log)) == rows(plain)


@pytest.mark.parametrize("at_the_end", [False, True])
def test_keys_in_the_file_are_used_wherever_they_stand(
    made: Session, plain: str, at_the_end: bool, tmp_path: Path
) -> None:
    whole = pcapng([ethernet(packet) for packet in conversation(made.turns)])
    first_packet = whole.index(struct.pack("<I", 6))
    keys = secrets_block(made.key_log)
    path = tmp_path / "keys.pcapng"
    path.write_bytes(whole + keys if at_the_end else whole[:first_packet] + keys + whole[first_packet:])
    assert rows(str(path)) == rows(plain)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "an empty key log"),
        (b"-----BEGIN CERTIFICATE-----\n", "not a key log: no line of it has a TLS secret"),
        (b"CLIENT_RANDOM " + b"00" * 32 + b" " + b"11" * 48 + b"\n", "keys of 0 of 1 TLS connection, about 3 exchanges "
         "stay encrypted: is it the log of this run?"),
        (b"CLIENT_RANDOM " + b"00" * 32 + b" " + b"11" * 48 + b"\nCLIENT_RAN", "the last line is incomplete"),
    ],
)  # fmt: skip
def test_one_line_says_what_is_wrong_with_a_key_log(made: Session, data: bytes, words: str, tmp_path: Path) -> None:
    path = capture_of(tmp_path, conversation(made.turns))
    done = kdissect("show", path, "--keylog", key_log(tmp_path, data))
    assert done.stdout.count(b"encrypted: TLS") == 1
    assert [words in line for line in done.stderr.decode().splitlines() if "keys.log" in line][:1] == [True]


def test_each_of_several_key_logs_is_judged_by_itself(made: Session, plain: str, tmp_path: Path) -> None:
    """Also one that ends within a line: that is not joined to the next log."""
    path = capture_of(tmp_path, conversation(made.turns))
    logs = {"empty": b"", "foreign": b"PK\x03\x04", "cut": OF_ANOTHER + b"CLIENT_RAN", "whole": made.key_log.strip()}
    for name, data in logs.items():
        (tmp_path / f"{name}.log").write_bytes(data)
    done = kdissect("show", path, *(word for name in logs for word in ("--keylog", str(tmp_path / f"{name}.log"))))
    assert done.stdout.count(b"Metadata") == len(rows(plain))
    found = [line.rpartition("/")[2] for line in done.stderr.decode().splitlines() if ".log: " in line]
    assert found == [
        "empty.log: an empty key log", "foreign.log: not a key log: no line of it has a TLS secret",
        "cut.log: the last line is incomplete",
    ]  # fmt: skip


def test_a_key_log_that_is_not_there_is_one_line(made: Session, tmp_path: Path) -> None:
    path = capture_of(tmp_path, conversation(made.turns))
    with pytest.raises(CaptureError):
        Capture([path], key_logs=[str(tmp_path / "none")])
    done = kdissect("show", path, "--keylog", str(tmp_path / "none"))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert b"no such file" in done.stderr


def test_the_environment_may_name_the_key_log(made: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = capture_of(tmp_path, conversation(made.turns))
    monkeypatch.setenv("KDISSECT_KEYLOG", key_log(tmp_path, made.key_log))
    assert kdissect("show", path).stdout.count(b"Metadata") == 6


def test_a_damaged_record_is_counted(made: Session, tmp_path: Path) -> None:
    turns = list(made.turns)
    data = bytearray(turns[-2].data)
    data[9] ^= 1
    turns[-2] = type(turns[-2])(turns[-2].from_client, bytes(data))
    path = capture_of(tmp_path, conversation(turns))
    with Capture([path], key_logs=[key_log(tmp_path, made.key_log)]) as capture:
        for _ in capture.read():
            pass
        assert [problem.code for problem in capture.problems] == ["tls-not-decrypted"]


@pytest.mark.long
def test_an_export_has_the_handshake_that_its_keys_belong_to(made: Session, tmp_path: Path) -> None:
    path = capture_of(tmp_path, conversation(made.turns))
    keys = key_log(tmp_path, made.key_log)
    part = str(tmp_path / "part.pcapng")
    assert kdissect("export", path, "--keylog", keys, "-Y", "number == 3", "-w", part).returncode == 0
    assert [row[3] for row in exchanges_of(part, keys)] == [2, 3]  # two requests are in one packet


def exchanges_of(path: str, keys: str) -> list[tuple[object, ...]]:
    with Capture([path], key_logs=[keys]) as capture:
        for _ in capture.read():
            pass
        return [
            (e.row.kind, e.row.api, e.row.version, e.row.correlation_id)
            for e in capture.exchanges()
            if e.row.kind == "exchange"
        ]


def exported(made: Session, folder: Path, *words: str) -> tuple[str, bytes]:
    """A capture that `export` writes of all rows, and what it said."""
    path, out = capture_of(folder, conversation(made.turns)), str(folder / "out.pcapng")
    done = kdissect("export", path, "--keylog", key_log(folder, made.key_log), *words, "-w", out)
    assert done.returncode == 0, done.stderr
    return out, done.stderr


def test_an_exported_capture_has_the_secrets_of_its_connections_alone(made: Session, tmp_path: Path) -> None:
    other = b"CLIENT_RANDOM " + b"ab" * 32 + b" " + b"cd" * 48 + b"\n"
    with_other = dataclasses.replace(made, key_log=made.key_log + other)
    out, words = exported(with_other, tmp_path)
    assert b"the file has the secrets of 1 TLS connection: " in words
    assert b"ab" * 32 not in Path(out).read_bytes()
    assert rows(out) == rows(*(str(tmp_path / name) for name in ("made.pcap", "keys.log")))


def test_secrets_can_be_left_out(made: Session, tmp_path: Path) -> None:
    out, words = exported(made, tmp_path, "--no-secrets")
    assert b"the secrets of" not in words
    assert [row[0] for row in rows(out)] == ["tls"]


def identity(exchange: Exchange) -> tuple[object, ...]:
    row = exchange.row
    return row.time_ns, row.api, row.version, row.correlation_id, row.request_size, row.response_size, row.latency_ns


@pytest.mark.long
@pytest.mark.parametrize("option", ["--decrypted", "--redact"])
def test_decrypted_exchanges_can_be_plain_tcp(option: str, made: Session, tmp_path: Path) -> None:
    out, _ = exported(made, tmp_path, option)
    data = Path(out).read_bytes()
    assert not any(line.split()[2] in data for line in made.key_log.splitlines() if not line.startswith(b"#"))
    with Capture([out]) as copy, Capture([str(tmp_path / "made.pcap")], key_logs=[str(tmp_path / "keys.log")]) as whole:
        for _ in (*copy.read(), *whole.read()):
            pass
        assert not copy.connections.protocols.get("TLS")
        pairs = list(zip(copy.exchanges(), whole.exchanges(), strict=True))
    assert len(pairs) == 6
    for mine, other in pairs:
        assert identity(mine) == identity(other)
        assert mine.request is not None
        assert other.request is not None
        assert (mine.request.data == other.request.data) == (option == "--decrypted")


@pytest.mark.long
@cases(
    ("options", "is_readable"),
    [((), True), (("--no-secrets",), False), (("--decrypted",), False), (("--decrypted", "--show-secrets"), True)],
)
def test_a_login_is_warned_of_where_the_exported_file_shows_it(
    options: tuple[str, ...], is_readable: bool, tmp_path: Path
) -> None:
    path, out = str(PCAPS / "tls/librdkafka-1.3-plain.pcapng"), tmp_path / "out.pcapng"
    done = kdissect("export", path, *options, "-w", str(out))
    assert done.returncode == 0
    assert (b"hold a login" in done.stderr) == is_readable
    with Capture([str(out)], show_secrets=True) as copy:
        shown = any(b"alice-secret" in each.request.data for each in copy.exchanges() if each.request is not None)
    assert shown == is_readable


@pytest.mark.long
def test_redaction_takes_plain_and_decrypted_rows_together(made: Session, tmp_path: Path) -> None:
    both = [*conversation(made.turns), *conversation(TURNS, client=("10.0.0.3", 40003))]
    path, out = capture_of(tmp_path, both), tmp_path / "out.json"
    done = kdissect("export", path, "--keylog", key_log(tmp_path, made.key_log), "--redact", "-w", str(out))
    assert done.returncode == 0, done.stderr
    assert out.read_bytes().count(b'"kind":"exchange"') == 12
    assert b"10.0.0.3" not in out.read_bytes()


@pytest.mark.long
def test_a_key_log_may_grow_behind_a_capture_that_grows(made: Session, plain: str, tmp_path: Path) -> None:
    """Its secrets come after all packets; the rows are there once they have come."""
    path = tmp_path / "grows.pcap"
    path.write_bytes(Path(capture_of(tmp_path, conversation(made.turns))).read_bytes())
    keys, ended = Path(key_log(tmp_path, b"")), [False]
    with Capture([GrowingFile(str(path), lambda: ended[0])], key_logs=[str(keys)]) as capture:
        steps = capture.read()
        for _ in range(5):
            next(steps)
        assert not len(capture)
        keys.write_bytes(made.key_log)
        for _ in range(5):
            next(steps)
        assert len(capture) == 6
        ended[0] = True
        for _ in steps:
            pass
        assert len(capture) == len(rows(plain))


def late_part(made: Session) -> list[Packet]:
    """The packets of the exchanges alone."""
    return conversation(made.turns)[len(conversation(made.turns[: made.shaken])) :]


@pytest.mark.long
def test_a_late_start_has_the_rows_of_its_plain_twin(made: Session, plain: str, tmp_path: Path) -> None:
    path = capture_of(tmp_path, late_part(made))
    expected = [row[:-1] for row in rows(plain)]  # without words about secrets: what was in front is not known
    assert [row[:-1] for row in rows(path, key_log(tmp_path, made.key_log))] == expected
    out = tmp_path / "out.pcapng"
    done = kdissect("export", path, "--keylog", str(tmp_path / "keys.log"), "-w", str(out))
    assert b"has the secrets of 1 TLS connection" in done.stderr
    assert [row[:-1] for row in rows(str(out))] == expected


def test_what_can_not_be_decrypted_of_a_late_start_is_a_gap(tmp_path: Path) -> None:
    large = session(exchanges(2, size=16_000))
    found = rows(capture_of(tmp_path, late_part(large)[2:]), key_log(tmp_path, large.key_log))
    assert [kind for kind, *_ in found] == ["gap", "exchange"]
    size, words = str(found[0][-1]).split(" ", 1)
    assert words == "bytes were not captured or not decrypted"
    assert 14_000 < int(size.replace(",", "")) < 15_000


def test_one_line_says_that_late_starts_are_not_found(tmp_path: Path) -> None:
    recorded = session(TURNS, ssl.TLSVersion.TLSv1_2)
    other = b"CLIENT_TRAFFIC_SECRET_0 " + b"00" * 32 + b" " + b"11" * 32 + b"\n"
    found = problems_of(capture_of(tmp_path, late_part(recorded)), key_log(tmp_path, other))
    words = "keys of 0 of 1 TLS connection, 1 of them without its handshake: only TLS 1.3 is found then"
    assert [message.partition("log: ")[2] for code, message in found if code == "key-log"] == [words]


def problems_of(path: str, *key_logs: str) -> list[tuple[str, str]]:
    with Capture([path], key_logs=key_logs) as capture:
        for _ in capture.read():
            pass
        return [(problem.code, problem.message) for problem in capture.problems]


@cases(
    ("ciphers", "words"),
    [
        ("AES256-SHA", "has no forward secrecy: tls.cipher == TLS_RSA_WITH_AES_256_CBC_SHA"),
        ("ECDHE-RSA-AES256-SHA384", "is of a kind that TLS 1.3 gave up: CBC: tls.cipher == "
         "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384"),
        ("AECDH-AES128-SHA", "is broken: tls.cipher == TLS_ECDH_anon_WITH_AES_128_CBC_SHA"),
        ("ECDHE-RSA-AES256-GCM-SHA384", ""),
    ],
)  # fmt: skip
def test_a_weak_cipher_suite_is_reported(ciphers: str, words: str, tmp_path: Path) -> None:
    recorded = session(TURNS, ssl.TLSVersion.TLSv1_2, ciphers)
    found = problems_of(capture_of(tmp_path, conversation(recorded.turns)))
    assert found == ([("tls-old", f"1 connection with a cipher suite that {words}")] if words else [])


@cases(
    ("year", "words"),
    [
        (2019, "was not valid before 2020-01-01"),
        (2020, ""),
        (2074, "expires on 2074-10-04"),
        (2075, "had expired on 2074-10-04"),
    ],
)
def test_a_certificate_that_is_not_valid_when_captured_is_reported(year: int, words: str, tmp_path: Path) -> None:
    recorded = session(TURNS, ssl.TLSVersion.TLSv1_2)
    captured = datetime(year, 9, 15, tzinfo=UTC)
    path = capture_of(tmp_path, conversation(recorded.turns), start=int(captured.timestamp()))
    whole = f"the broker's certificate CN=rsa.example {words} (1 connection)"
    assert problems_of(path) == ([("tls-certificate", whole)] if words else [])


def test_an_encrypted_alert_and_an_end_without_notice_are_reported(tmp_path: Path) -> None:
    recorded = Ends(client_certificate=True, trusted="rsa").made()
    packets = conversation(recorded.turns)
    end = replace(packets[-1], payload=b"", seq=packets[-1].seq + len(packets[-1].payload), flags=FIN | ACK)
    other = next(each for each in reversed(packets) if each.from_client is not end.from_client)
    reply = replace(other, payload=b"", seq=other.seq + len(other.payload), flags=FIN | ACK)
    path = capture_of(tmp_path, [*packets, end, reply])
    found = problems_of(path, key_log(tmp_path, recorded.key_log))
    assert [code for code, _ in found] == ["tls-alert", "tls-closed-early"]
    assert found[0][1].startswith("TLS handshake failed: the broker sent the alert unknown_ca: it wants a certificate")

"""Pasted bytes on every face: text, JSON, standard input, the screen's open, Python; one line for what has none."""

import json
from pathlib import Path
from typing import Final

import pytest

import dissector
from dissector import encode_request, encode_response
from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.pasted.forms import FORMS, od_c

REQUEST: Final = encode_request(
    "ApiVersions", 3, {"client_software_name": "apache-kafka-java", "client_software_version": "2.8.0"},
    correlation_id=101, client_id="adminclient-1",
)  # fmt: skip
RESPONSE: Final = encode_response(
    "ApiVersions", 3, {"error_code": 0, "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 3}]},
    correlation_id=101,
)  # fmt: skip
LOGIN: Final = encode_request(
    "SaslAuthenticate", 2, {"auth_bytes": b"\0alice\0SeCrEt77"}, correlation_id=3, client_id="c"
)
IP: Final = bytes.fromhex("4500005d12344000400600007f0000017f0000019c472384000003e8000007d05018020000000000")


@pytest.mark.long
@pytest.mark.slow
@cases("form", sorted(FORMS))
def test_each_form_is_one_exchange_in_python(form: str) -> None:
    with dissector.open(FORMS[form](REQUEST).encode()) as capture:
        [exchange] = capture
        assert (exchange.api, exchange.api_version, exchange.correlation_id) == ("ApiVersions", 3, 101)
        assert exchange.request is not None
        assert exchange.request.data == REQUEST


@pytest.mark.long
@cases("form", ["xxd", "Go", "Python", "base64", "strace", "netty", "bare"])
def test_two_messages_are_one_exchange_on_standard_input(form: str) -> None:
    text = f"{FORMS[form](REQUEST)}\n\n{FORMS[form](RESPONSE)}\n"
    done = kdissect("show", "-", "-f", "json", data=text.encode())
    [line] = map(json.loads, done.stdout.splitlines())
    assert (line["request"]["size"], line["response"]["size"]) == (len(REQUEST), len(RESPONSE))
    assert not line["findings"]
    assert len(done.stderr.splitlines()) == 1


def test_a_packet_has_its_own_addresses_and_time(tmp_path: Path) -> None:
    rows = FORMS["tcpdump -X of a stream"](IP + REQUEST)
    path = tmp_path / "dump.txt"
    path.write_text(f"2026-11-26 22:13:20.001000 IP 127.0.0.1.40007 > 127.0.0.1.9092: length 53\n{rows}")
    with dissector.open(path) as capture:
        [exchange] = capture
        assert (exchange.client, exchange.server) == ("127.0.0.1:40007", "127.0.0.1:9092")
        assert exchange.request is not None
        assert exchange.request.time_ns == 1_795_731_200_001_000_000


def test_a_cut_message_says_how_many_bytes_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "cut.txt"
    path.write_text(FORMS["xxd"](REQUEST[:-9]) + "...\n")
    done = kdissect("show", str(path))
    assert b"adminclient-1" in done.stdout
    assert b"of which 44 are there: 9 are missing" in done.stderr


def test_rows_that_are_left_out_are_a_gap() -> None:
    rows = FORMS["xxd"](REQUEST + REQUEST).splitlines()
    text = "\n".join([*rows[:2], "[...]", *rows[3:]])
    assert b"16 bytes are left out" in kdissect("show", "-", data=text.encode()).stderr
    with dissector.open(text.encode()) as capture:
        assert [exchange.correlation_id for exchange in capture if exchange.api == "ApiVersions"] == [101, 101]


@pytest.mark.long
@cases("form", ["bare", "Java", "hexdump -C"])
def test_a_message_without_its_size_is_read_and_said(form: str) -> None:
    for data, side in ((REQUEST[4:], b"the client's"), (RESPONSE[4:], b"taken for a response")):
        done = kdissect("show", "-", data=FORMS[form](data).encode())
        assert b"ApiVersions" in done.stdout
        assert b"without its size prefix" in done.stderr
        assert side in done.stderr


def test_a_lone_response_is_no_produce_request() -> None:
    done = kdissect("show", "-", data=b"00000013 00000001 0000 02 0012 0000 0003 00 00000000 00")
    assert b"ApiVersions?" in done.stdout
    assert b"--response API:VERSION" in done.stderr


def test_a_body_alone_is_read_with_what_it_answers() -> None:
    done = kdissect("show", "-", "--response", "ApiVersions:3", "-f", "json", data=RESPONSE[8:].hex().encode())
    assert json.loads(done.stdout)["response"]["body"]["api_keys"][0]["api_key"] == 18
    assert b"a body without a header" in done.stderr


@pytest.mark.long
@cases("form", ["xxd", "Python", "base64"])
def test_secrets_in_pasted_bytes_are_masked(form: str) -> None:
    text = FORMS[form](LOGIN).encode()
    for output in ("text", "tree", "json"):
        done = kdissect("show", "-", "-f", output, data=text)
        assert b"SaslAuthenticate" in done.stdout
        for words in (b"SeCrEt77", b"SeCrEt77".hex().encode()):
            assert words not in done.stdout + done.stderr
    assert b"SeCrEt77".hex().encode() in kdissect("show", "-", "-f", "json", "--show-secrets", data=text).stdout


@pytest.mark.long
@cases("command", ["show", "stats", "open"])
def test_a_text_without_bytes_is_one_line_that_names_the_forms(command: str, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("# nothing\n2026-11-26 10:15:30 the broker closed 12 connections\n" * 20)
    done = kdissect(command, str(path))
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert b"not a capture" in line
    assert b"xxd" in line
    assert b"base64" in line


def test_a_large_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        file.write(FORMS["xxd"](REQUEST).encode())
        file.truncate(1 << 28)
    done = kdissect("show", str(path))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_a_text_of_characters_alone_is_read_too() -> None:
    with dissector.open(od_c(REQUEST).encode()) as capture:
        assert len(capture) == 1


def test_quoted_mail_is_no_transcript() -> None:
    quoted = "\n".join(f"> {line}" for line in FORMS["spaces"](REQUEST).split("\n"))
    with dissector.open(f"{quoted}\n\nOn Thu somebody wrote this.\n".encode()) as capture:
        assert [exchange.api for exchange in capture] == ["ApiVersions"]

"""All forms of a key log give the same plaintext, however it is read; none of its secrets is in a text."""

import ssl
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.store import Store
from dissector.tls import KeyLog
from dissector.tls.key_log import KeyLogText
from tests.cases import cases
from tests.core.test_stages import Captured, output
from tests.tls.sessions import Session, session
from tests.tls.test_stage import TLS12, decrypted, plain, runs_of, secrets_in, stage_of, streams
from tests.traffic import conversation, exchanges

NO_EXTENDED_MASTER_SECRET = 1
"""Of OpenSSL; Python has no name for it."""
RSA = ("AES128-SHA", "AES256-SHA256", "AES128-GCM-SHA256", "AES256-GCM-SHA384")
"""Suites in which the client encrypts the premaster secret."""


@cache
def recorded(suite: str, *, is_extended: bool = True, client_certificate: bool = False) -> Session:
    """A session of TLS 1.2 without tickets, so that it has an id."""
    options = ssl.OP_NO_TICKET | (0 if is_extended else NO_EXTENDED_MASTER_SECRET)
    return session(exchanges(3, size=40), TLS12, suite, options=options, client_certificate=client_certificate)


def lines(made: Session, label: bytes) -> list[bytes]:
    return [line for line in made.key_log.splitlines() if line.startswith(label + b" ")]


def read(made: Session, key_log: bytes) -> dict[int, bytes]:
    return streams(decrypted(conversation(made.turns), key_log))


@pytest.mark.long
@cases("client_certificate", [False, True])
@cases("is_extended", [False, True])
@cases("suite", RSA)
def test_a_premaster_secret_is_enough(suite: str, is_extended: bool, client_certificate: bool) -> None:
    """NSS names it by its encrypted form, Wireshark by the client's random too."""
    made = recorded(suite, is_extended=is_extended, client_certificate=client_certificate)
    [by_encrypted] = lines(made, b"RSA")
    assert read(made, by_encrypted + b"\n") == plain(made)
    [known] = lines(made, b"CLIENT_RANDOM")
    by_random = b" ".join((b"PMS_CLIENT_RANDOM", known.split()[1], by_encrypted.split()[2]))
    assert read(made, by_random + b"\n") == plain(made)


@cases("suite", ["ECDHE-RSA-AES128-GCM-SHA256", *RSA])
def test_a_session_id_names_a_master_secret(suite: str) -> None:
    """As agents in Java write it."""
    made = recorded(suite)
    assert read(made, by_session(made)) == plain(made)


def by_session(made: Session) -> bytes:
    hello = next(turn.data for turn in made.turns if not turn.from_client)
    at = 5 + 4 + 2 + 32
    [known] = lines(made, b"CLIENT_RANDOM")
    name = hello[at + 1 : at + 1 + hello[at]].hex().upper().encode()
    return b"RSA Session-ID:" + name + b" Master-Key:" + known.split()[2].upper() + b"\r\n"


@cases("form", ["CLIENT_RANDOM", "RSA", "session"])
def test_the_secrets_of_a_connection_can_be_selected_in_each_form(form: str) -> None:
    made, other = recorded("AES256-GCM-SHA384"), recorded("AES128-SHA")
    mine, its = (by_session(each) if form == "session" else lines(each, form.encode())[0] for each in (made, other))
    store = Store()
    chain, tls = stage_of(store, mine + b"\n" + its + b"\n")
    runs_of(output(chain, Captured(conversation(made.turns), store).batches([])), store)
    assert tls.key_log_of([0]).lower().split() == mine.lower().split()


@given(cuts=st.lists(st.integers(0, 2000), max_size=6))
def test_a_log_may_be_cut_anywhere(cuts: list[int]) -> None:
    made = recorded("AES256-GCM-SHA384")
    whole, keys = made.key_log + by_session(made).strip(), KeyLog()
    text, other = KeyLogText(keys), KeyLogText(keys)
    at = 0
    for cut in sorted(cut % len(whole) for cut in cuts):
        text.add(whole[at:cut])
        other.add(b"#")
        at = cut
    text.add(whole[at:])
    text.finish()
    assert (len(keys), text.secrets, text.bad_lines, other.secrets) == (3, 3, 0, 0)
    assert not any(secret.hex() in repr(keys) for secret in secrets_in(made.key_log))


@cases("form", [b"CLIENT_RANDOM", b"RSA", b"RSA Session-ID"])
def test_a_line_that_is_not_whole_is_no_secret(form: bytes) -> None:
    """Wherever it ends: half of the time it has the form of a line."""
    made = recorded("AES256-GCM-SHA384")
    line = by_session(made).strip() if form.endswith(b"ID") else lines(made, form)[0]
    for end in range(1, len(line)):
        text = KeyLogText(KeyLog())
        text.add(line[:end])
        assert text.is_cut
        text.finish()
        text.add(b"\n")
        assert (text.secrets, text.bad_lines) == (0, 1)


@given(data=st.binary(max_size=200))
def test_any_bytes_are_survived_as_a_log(data: bytes) -> None:
    keys = KeyLog()
    text = KeyLogText(keys)
    text.add(data)
    text.finish()
    assert not len(keys)


@cases(
    "line",
    [
        b"RSA 00 11",
        b"RSA " + b"00" * 9 + b" " + b"11" * 48,
        b"CLIENT_RANDOM 00 11",
        b"NONSENSE 00 11",
        b"CLIENT_RANDOM",
    ],
)
def test_a_line_that_is_none_is_counted(line: bytes) -> None:
    keys = KeyLog()
    keys.add(line + b"\n")
    assert (len(keys), keys.bad_lines) == (0, 1)

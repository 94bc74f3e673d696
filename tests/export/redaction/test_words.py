"""Pseudonyms of names and addresses; allowed words; SASL tokens."""

import json
from base64 import urlsafe_b64encode
from ipaddress import ip_address, ip_network

from hypothesis import given
from hypothesis import strategies as st

from dissector.export.redaction.allowed_words import is_allowed
from dissector.export.redaction.pseudonyms import AddressPseudonyms, Pseudonyms
from dissector.export.redaction.sasl_tokens import redacted_token
from dissector.protocol.embedded.sasl import sasl_token
from dissector.protocol.tree import Node
from tests.cases import cases

PRIVATE = [ip_network(each) for each in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16")]


@given(st.lists(st.binary(min_size=4, max_size=40), unique=True))
def test_a_name_has_one_pseudonym_of_its_size_and_shares_it_with_no_other(names: list[bytes]) -> None:
    book = Pseudonyms()
    made = [book.of(name, "topic") for name in names]
    assert [len(each) for each in made] == [len(name) for name in names]
    assert len(set(made)) == len(names)
    assert all(each != name for each, name in zip(made, names, strict=True))
    assert [book.of(name, "group") for name in names] == made


def test_pseudonyms_begin_with_the_kind_of_name_if_there_is_room() -> None:
    book = Pseudonyms()
    assert book.of(b"orders-2024", "topic") == b"topic-00001"
    assert book.of(b"pay", "topic") == b"to1"
    assert book.of(b"x", "topic") == b"1"
    assert book.of(b"", "topic") == b""


def test_names_without_a_free_pseudonym_share_asterisks() -> None:
    book = Pseudonyms()
    made = [book.of(bytes([number]), "topic") for number in range(60)]
    assert len(set(made[:34])) == 34
    assert set(made[40:]) == {b"*"}


@given(st.lists(st.ip_addresses(v=4).map(str), unique=True, max_size=50))
def test_an_ipv4_address_keeps_its_length_and_its_kind(addresses: list[str]) -> None:
    book = AddressPseudonyms()
    made = [book.of(each) for each in addresses]
    assert len(set(made)) == len(made)
    for was, now in zip(addresses, made, strict=True):
        assert len(now) == len(was)
        assert ip_address(now).is_loopback == ip_address(was).is_loopback
        assert all(ip_address(now) in network for network in PRIVATE if ip_address(was) in network)
        assert (now == was) == (ip_address(was).is_loopback or ip_address(was).is_unspecified)


@given(st.lists(st.ip_addresses(v=6).map(str), unique=True, max_size=50))
def test_an_ipv6_address_becomes_a_documentation_address(addresses: list[str]) -> None:
    book = AddressPseudonyms()
    made = [book.of(each) for each in addresses]
    assert len(set(made)) == len(made)
    assert all(ip_address(each).version == 6 for each in made)


def test_private_networks_stay_private() -> None:
    book = AddressPseudonyms()
    assert book.of("192.168.1.77").startswith("192.168.")
    assert book.of("10.20.30.40").startswith("10.")
    assert book.of("172.16.0.1").startswith("172.16.")
    assert book.of("127.0.0.1") == "127.0.0.1"
    assert book.of("fe80::1:2:3").startswith("fe80::")
    assert book.of("fd12:3456::1").startswith("fd00::")
    assert book.of("2a00:1450::8").startswith("2001:db8::")


def jwt(claims: dict[str, str]) -> bytes:
    pieces = [json.dumps(each).encode() for each in ({"alg": "none"}, claims)]
    return b".".join(urlsafe_b64encode(each).rstrip(b"=") for each in pieces) + b".c2lnbmF0dXJl"


TOKENS = {
    "PLAIN": [b"\x00alice\x00alice-secret", b"admin\x00alice\x00secret word"],
    "SCRAM-SHA-256": [
        b"n,,n=alice,r=fyko+d2lbbFgONRv9qkxdawL", b"n,a=admin,n=alice,r=fyko+d2lbbFgONRv9qkxdawL",
        b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZV,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZV,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", b"e=other-secret-words",
    ],
    "OAUTHBEARER": [
        b"n,,\x01auth=Bearer " + jwt({"sub": "alice", "scope": "secret"}) + b"\x01\x01",
        b"n,a=alice,\x01auth=bearer opaque-secret-token\x01extra=secret-word\x01\x01",
        b'{"status":"invalid_token","scope":"secret"}',
    ],
    "GSSAPI": [b"`\x82\x02alice-secret"],
}  # fmt: skip


def test_a_redacted_token_parses_and_has_no_content() -> None:
    names = Pseudonyms()
    for mechanism, tokens in TOKENS.items():
        for token in tokens:
            made = redacted_token(token, mechanism, names)
            was, now = sasl_token(token, mechanism), sasl_token(made, mechanism)
            assert was is not None
            assert now is not None
            assert len(made) == len(token)
            names_now = [each.name.replace("x" * len("extra"), "extra") for each in now.items]
            assert names_now == [each.name for each in was.items]
            assert [each[2:4] for each in now.items] == [each[2:4] for each in was.items]
            for word in (b"alice", b"admin", b"secret", b"fyko", b"W22Z", b"dHzb", b"6rri", b"c2ln", b"opaque"):
                assert word not in made
            assert not any(piece in made for piece in token.split(b"Bearer ")[-1].split(b".")[:2] if b"ey" in piece)


def test_a_user_has_one_pseudonym_in_all_messages_of_a_login() -> None:
    names = Pseudonyms()
    plain = redacted_token(b"\x00alice\x00alice-secret", "PLAIN", names)
    scram = redacted_token(b"n,,n=alice,r=fyko", "SCRAM-SHA-512", names)
    assert plain.split(b"\x00")[1] == names.of(b"alice", "user")
    assert b"n=" + names.of(b"alice", "user") in scram


@cases(("path", "text", "is_kept"), [
    ("body.client_software_name", "apache-kafka-java", True), ("body.client_software_name", "our app", False),
    ("body.mechanism", "SCRAM-SHA-256", True), ("body.mechanism", "alice", False),
    ("body.protocols[0].name", "range", True), ("body.protocols[0].name", "orders", False),
    ("body.topics[0].name", "range", False), ("body.topics[0].name", "__consumer_offsets", True),
])  # fmt: skip
def test_words_of_kafka_stay_in_their_fields(path: str, text: str, is_kept: bool) -> None:
    assert is_allowed(Node(path.rpartition(".")[2], path, "STRING", 0, len(text)), text) == is_kept

"""What stands in place of addresses, names and SASL tokens: of the same size and kind, and nothing of the original."""

import base64
import json
from ipaddress import IPv4Address, ip_address

import pytest

import dissector
from dissector.export.redaction import frames
from dissector.export.redaction.allowed_words import pseudonym_prefix
from dissector.export.redaction.frames import Redactor, _redact_unparsed
from dissector.export.redaction.pseudonyms import _PUBLIC, ALPHABET, AddressPseudonyms, Pseudonyms
from dissector.export.redaction.sasl_tokens import _piece, redacted_token
from dissector.protocol.message import Traced, trace
from dissector.protocol.message_layout import request_layout
from dissector.protocol.records.batch import Record
from dissector.protocol.records.entries import MAGIC_AT
from dissector.protocol.tree import UNPARSED, Node
from tests.cases import cases
from tests.export.redaction.test_frames import produce
from tests.protocol.records.test_batch import batch

ONE_SECRET = Record(100, 5_000, b"key", b"secret" * 5, [])
ADDRESSES = (
    "8.8.8.8", "8.80.8.200", "93.184.216.34", "140.82.112.3", "10.0.0.1", "10.10.10.10", "10.200.3.44", "192.168.1.20",
    "172.16.0.9", "172.31.255.255", "169.254.7.7", "100.64.0.1",
)  # fmt: skip


@cases("text", ADDRESSES)
def test_an_address_keeps_its_kind_and_the_number_of_its_digits(text: str) -> None:
    made = AddressPseudonyms().of(text)
    assert made != text
    assert [len(part) for part in made.split(".")] == [len(part) for part in text.split(".")]
    for kind in ("is_private", "is_global", "is_link_local", "is_multicast", "is_loopback"):
        assert getattr(IPv4Address(made), kind) == getattr(IPv4Address(text), kind)
    same = 0 if IPv4Address(text).is_global else 1 if text.startswith("10.") else 2
    assert made.split(".")[:same] == text.split(".")[:same]


def test_of_a_private_address_as_much_is_new_as_is_private() -> None:
    texts = ("10.200.3.44", "172.16.5.6", "192.168.77.7", "169.254.7.77")
    made = [AddressPseudonyms().of(text) for text in texts]
    assert made == ["10.100.0.10", "172.16.0.0", "192.168.10.0", "169.254.0.10"]


def test_the_kind_of_a_name_is_that_of_its_field() -> None:
    body = {"topics": [{"name": "orders"}], "allow_auto_topic_creation": True}
    data = dissector.encode_request("Metadata", 9, body, client_id="me")
    leaves = {node.path: node for node in trace(data, request_layout(3, 9)).tree.walk()}
    assert pseudonym_prefix(leaves["body.topics[0].name"]) == "topic"
    assert pseudonym_prefix(leaves["header.client_id"]) == "client"
    for path, kind in (("body.host.(length)", "host"), ("body.(host)", "text"), ("body.rack", "rack"), ("", "text")):
        assert pseudonym_prefix(Node("x", path, "STRING", 0, 1)) == kind


def test_first_numbers_of_public_addresses_make_nothing_else() -> None:
    for digits, numbers in enumerate(_PUBLIC):
        for number in numbers:
            assert len(str(number)) == digits
            for second in (0, 16, 88, 168, 254):
                assert not IPv4Address(f"{number}.{second}.9.9").is_private
                assert not IPv4Address(f"{number}.{second}.9.9").is_multicast


def test_each_address_has_its_own_as_long_as_there_are_some_left() -> None:
    addresses = AddressPseudonyms()
    made = [addresses.of(f"192.168.{a}.{b}") for a in range(10) for b in range(10)]
    assert all(text.startswith("192.168.") and len(text) == 11 for text in made)
    ordered = made[: made.index("192.168.9.9")]
    assert len({*ordered}) == len(ordered) >= 45
    assert {*made[len(ordered) :]} == {"192.168.9.9"}
    assert [addresses.of(f"192.168.{n // 10}.{n % 10}") for n in range(100)] == made


@cases(("text", "made"), [
    ("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "0.0.0.0"), ("::1", "::1"), ("::", "::"), ("fe80::77", "fe80::1"),
    ("fd12:3456::1", "fd00::1"), ("2606:4700::1111", "2001:db8::1"),
])  # fmt: skip
def test_what_identifies_nobody_stays_and_the_others_are_counted(text: str, made: str) -> None:
    addresses = AddressPseudonyms()
    assert addresses.of(text) == made
    second = addresses.of("2606:4700::2222")
    assert int(ip_address(second)) - int(ip_address("2001:db8::")) == 2
    with pytest.raises(ValueError, match=r"host\.example"):
        addresses.of("host.example")


def test_names_have_others_of_their_size_until_there_are_no_more() -> None:
    names = Pseudonyms()
    made = [names.of(bytes([97 + n]), "u") for n in range(26)]
    assert all(len(each) == 1 for each in made)
    assert len({*made}) >= min(26, len(ALPHABET) - 2)
    assert all(new != bytes([97 + n]) for n, new in enumerate(made))
    assert [names.of(bytes([97 + n]), "u") for n in range(26)] == made


USER = Pseudonyms().of(b"ann", "user")


@cases(("mechanism", "token", "made"), [
    ("PLAIN", b"\0ann\0pass", b"\0" + USER + b"\0****"),
    ("PLAIN", b"ann\0ann\0pa\0ss", USER + b"\0" + USER + b"\0*****"),
    ("SCRAM-SHA-256", b"n,,n=ann,r=nonce", b"n,,n=" + USER + b",r=*****"),
    ("SCRAM-SHA-256", b"y,a=ann,n=ann,r=x", b"y,a=" + USER + b",n=" + USER + b",r=*"),
    ("SCRAM-SHA-256", b"p=tls-unique,,n=ann,r=x", b"p=" + b"*" * 10 + b",,n=" + USER + b",r=*"),
    ("SCRAM-SHA-512", b"r=nonce,s=salt,i=4096", b"r=*****,s=****,i=4096"),
    ("SCRAM-SHA-512", b"r=nonce,s=salt,i=4o96", b"r=*****,s=****,i=****"),
    ("SCRAM-SHA-512", b"c=biws,r=nonce,p=proof", b"c=biws,r=*****,p=*****"),
    ("SCRAM-SHA-512", b"c=biwt,r=x", b"c=****,r=*"),
    ("SCRAM-SHA-512", b"v=server", b"v=******"),
    ("OAUTHBEARER", b"n,,\1auth=Bearer opaque\nx\1host=h\1\1", b"n,,\1auth=Bearer ********\1host=*\1\1"),
    ("OAUTHBEARER", b"n,a=ann,\1auth=x\1\1", b"n,a=" + USER + b",\1auth=*\1\1"),
    ("OAUTHBEARER", b"n,,\1auth=bearer  aaaaaaa.bbb.c.c\1\1", b"n,,\1auth=bearer  eyB9ICA.e30.***\1\1"),
    ("OAUTHBEARER", b"n,,\1auth=Basic abc\1key\1\1", b"n,,\1auth=*********\1***\1\1"),
    ("OAUTHBEARER", b"n,,\1auth=x\1acme=y\1port=9\1\1", b"n,,\1auth=*\1xxxx=*\1port=*\1\1"),
    ("SCRAM-SHA-512", b"r=x,acme,i=1234567890,", b"r=*,****,i=**********,"),
    ("OAUTHBEARER", b'{"status":"x"}', b"{}            "),
    ("GSSAPI", b"\1\2\3", b"***"),
])  # fmt: skip
def test_a_token_keeps_its_syntax_and_nothing_else(mechanism: str, token: bytes, made: bytes) -> None:
    found = redacted_token(token, mechanism, Pseudonyms())
    assert len(found) == len(token)
    if b"bearer" not in token:
        assert found == made
    else:
        scheme, _, rest = found.partition(b"  ")
        assert scheme == b"n,,\1auth=bearer"
        header, claims, signature = rest.split(b"\1")[0].split(b".", 2)
        assert [json.loads(base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4))) for part in (header, claims)] == [
            {},
            {},
        ]
        assert signature == b"***"


def test_a_piece_of_a_jwt_is_an_empty_object_wherever_one_fits() -> None:
    for size in range(14):
        for padding in (b"", b"="):
            made = _piece(b"x" * size + padding)
            assert len(made) == size + len(padding)
            if size > 2 and size % 4 != 1:
                assert json.loads(base64.urlsafe_b64decode(made.rstrip(b"=") + b"=" * (-size % 4))) == {}
                assert made.endswith(padding)
            else:
                assert made == b"*" * len(made)


def traced(data: bytes) -> Traced:
    return trace(data, request_layout(0, 9))


@cases("codec", [1, 3])
def test_sections_that_do_not_fit_are_counted_and_become_zeros(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = produce(batch([ONE_SECRET] * 20, codec))
    some = Redactor()
    some.frame(traced(data))
    assert some.lost == 0
    spans = []
    monkeypatch.setattr(frames, "compress_to_size", lambda _codec, _plain, _like, free: spans.append([*free]))
    other = Redactor()
    out = other.frame(traced(data))
    assert other.lost == 1
    assert len(spans[0]) == 40
    assert out.count(0) > data.count(0) + 40


@cases(("size", "is_kept"), [(MAGIC_AT, False), (MAGIC_AT + 1, True), (40, True)])
def test_a_batch_cut_by_a_fetch_keeps_its_length_and_magic(size: int, is_kept: bool) -> None:
    data = bytes(range(1, size + 1))
    leaf = Node("records", "records", UNPARSED, 0, size, data, "truncated batch, normal")
    kept = bytes(8) + data[8:12] + bytes(4) + data[16:17] + bytes(size - 17) if is_kept else bytes(size)
    assert _redact_unparsed(leaf) == kept
    leaf.note = "unknown"
    assert _redact_unparsed(leaf) == bytes(size)


def test_a_host_that_is_an_address_is_replaced_as_that_of_packets() -> None:
    redactor = Redactor()
    host = Node("host", "body.host", "STRING", 0, 9, "10.0.0.17")
    for before in ("", "/"):
        address = redactor.addresses.of("10.0.0.17")
        assert redactor.text(host, f"{before}10.0.0.17") == f"{before}{address}".encode()
    assert redactor.text(host, "999.1.1.1") == redactor.names.of(b"999.1.1.1", "host")
    topic = Node("name", "body.topics[0].name", "STRING", 0, 9, "10.0.0.17")
    assert b"10.0.0" not in redactor.text(topic, "10.0.0.17")


@cases("text", ["kafka-1", "ip-10.0.0.17-acme", "kafka-10.1.2.3-acme.internal", "/10.9.8.7-acme", "//10.9.8.7",
                "acme@10.1.2.4", "10.0.0.17:acme", "10.0.0.1.acme", "acme/10.0.0.17"])  # fmt: skip
def test_an_address_in_a_name_keeps_nothing_of_the_name(text: str) -> None:
    redactor = Redactor()
    for field in ("host", "client_host", "principal", "client_host_address"):
        made = redactor.text(Node(field, f"body.{field}", "STRING", 0, 9, text), text)
        assert made == redactor.names.of(text.encode(), "host")
        assert not {*_pieces(text)} & {*_pieces(made.decode())}


def _pieces(text: str) -> list[str]:
    return [text[at : at + 4] for at in range(len(text) - 3) if text[at : at + 4] != "host"]


@cases(("field", "stays", "goes"), [
    ("client_software_name", ["apache-kafka-java", "kgo"], ["acme-kafka", "apache-kafka-java-acme", "Kgo"]),
    ("client_software_version", ["4.3.1", "v1.61.1", "1.0", "2.16.1-rdkafka-2.16.0"],
     ["4.3.1-acme", "acme", "10.1.2.3", "2026", "1.0-rdkafka-acme", "20261.1", "4.3.1\n"]),
    ("mechanism", ["PLAIN", "SCRAM-SHA-512", "GSSAPI"], ["ACME", "SCRAM-ACME", "plain"]),
    ("mechanisms[0]", ["PLAIN"], ["ACME_LOGIN"]),
])  # fmt: skip
def test_known_clients_versions_and_mechanisms_stay_and_nothing_else(
    field: str, stays: list[str], goes: list[str]
) -> None:
    redactor = Redactor()
    node = Node(field, f"body.{field}", "STRING", 0, 9, "")
    assert [redactor.text(node, each) for each in stays] == [each.encode() for each in stays]
    for each in goes:
        made = redactor.text(node, each)
        assert made == redactor.names.of(each.encode(), "text")
        assert made != each.encode()


def test_a_token_is_replaced_in_its_place() -> None:
    data = dissector.encode_request("SaslAuthenticate", 1, {"auth_bytes": b"\0ann\0hunter2".hex()}, client_id="me")
    out = Redactor().frame(trace(data, request_layout(36, 1)))
    assert len(out) == len(data)
    assert out[-16:] == data[-16:-12] + b"*" * 12  # of a mechanism that nobody said

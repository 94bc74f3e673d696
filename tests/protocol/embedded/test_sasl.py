"""Tokens of logins, from the examples in their RFCs; any bytes are survived and tile."""

import struct
from base64 import urlsafe_b64encode

from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.embedded.sasl import sasl_token
from dissector.protocol.embedded.subtree import Subtree
from dissector.protocol.message import trace
from dissector.protocol.message_layout import SASL_TOKEN
from tests.cases import cases
from tests.protocol.trees import assert_tiled

CLAIMS = b'{"sub":"alice","exp":1795250258}'
JWT = b".".join(urlsafe_b64encode(each).rstrip(b"=") for each in (b'{"alg":"HS256"}', CLAIMS, b"\x01\xfe signed"))
EXAMPLES = [
    ("PLAIN", b"Ursel\0Kurt\0xipj3plmq", {"authzid": "Ursel", "username": "Kurt", "password": "xipj3plmq"}),
    ("PLAIN", b"\0tim\0tanstaaftanstaaf", {"authzid": "", "username": "tim", "password": "tanstaaftanstaaf"}),
    ("SCRAM-SHA-256", b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
     {"gs2_header": "n,,", "username": "user", "nonce": "rOprNGfwEbeRWgbNEkqO"}),
    ("SCRAM-SHA-256", b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
     {"nonce": "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", "salt": "W22ZaJ0SNY7soEsUEjb6gQ==",
      "iterations": "4096"}),
    ("SCRAM-SHA-256", b"c=biws,r=rOprNGfwEbeRWgbNEkqO,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
     {"channel_binding": "biws", "nonce": "rOprNGfwEbeRWgbNEkqO",
      "proof": "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="}),
    ("SCRAM-SHA-256", b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
     {"verifier": "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="}),
    ("SCRAM-SHA-512", b"e=invalid-proof", {"error": "invalid-proof"}),
    ("OAUTHBEARER", b"n,a=user@example.com,\x01host=server\x01auth=Bearer " + JWT + b"\x01\x01",
     {"gs2_header": "n,a=user@example.com,", "host": "server",
      "token": {"header": '{"alg": "HS256"}', "claims": '{"sub": "alice", "exp": 1795250258}',
                "signature": JWT.rsplit(b".", 1)[1].decode()}, "(end)": ""}),
    ("OAUTHBEARER", b"n,,\x01auth=Bearer opaque-token\x01\x01",
     {"gs2_header": "n,,", "token": "opaque-token", "(end)": ""}),
    ("OAUTHBEARER", b'{"status":"invalid_token"}', {"error": '{"status":"invalid_token"}'}),
]  # fmt: skip
SECRETS = ("xipj3plmq", "tanstaaf", "dHzbZapWIk4", "6rriTRBi23", "opaque-token", JWT.rsplit(b".", 1)[1].decode())


@cases(("mechanism", "raw", "expected"), EXAMPLES)
def test_the_examples_of_the_rfcs(mechanism: str, raw: bytes, expected: dict[str, object]) -> None:
    found = sasl_token(raw, mechanism)
    assert isinstance(found, Subtree)
    assert found.read(raw) == expected
    guessed = sasl_token(raw, None)
    assert guessed is None or guessed.read(raw) == expected, "recognized by its bytes it is the same, or nothing"


@cases("between", [b"\xff", b"\x01", b"\x7f", b"\xc3", b"\x1f"])
def test_a_name_of_plain_that_is_no_text_may_have_the_password_in_it(between: bytes) -> None:
    """RFC 4616 has texts: another byte there may be the NUL before the password, and one of its own may be the NUL."""
    raw = b"\0tim" + between + b"tanstaaf\0staaf"
    tree = trace(struct.pack(">i", len(raw)) + raw, SASL_TOKEN, context=DecodingContext(mechanism="PLAIN"))
    assert_tiled(tree)
    hidden = [raw[node.secret[0] - 4 : node.secret[1] - 4] for node in tree.tree.walk() if node.secret]
    assert hidden == [b"", raw[1:-6], b"staaf"]


@cases("name", [b"tim", "Jürgen Müller".encode(), "\u0416\u6f22".encode(), b"CN=tim, O=x"])
def test_a_name_of_plain_that_is_text_is_shown(name: bytes) -> None:
    raw = b"\0" + name + b"\0secret"
    tree = trace(struct.pack(">i", len(raw)) + raw, SASL_TOKEN, context=DecodingContext(mechanism="PLAIN"))
    hidden = [raw[node.secret[0] - 4 : node.secret[1] - 4] for node in tree.tree.walk() if node.secret]
    assert hidden == [b"secret"]


@cases(("mechanism", "raw", "expected"), EXAMPLES)
def test_what_would_let_somebody_in_is_marked_and_nothing_else(
    mechanism: str, raw: bytes, expected: dict[str, object]
) -> None:
    frame = struct.pack(">i", len(raw)) + raw
    tree = trace(frame, SASL_TOKEN, context=DecodingContext(mechanism=mechanism))
    assert_tiled(tree)
    hidden = b"".join(frame[node.secret[0] : node.secret[1]] for node in tree.tree.walk() if node.secret)
    secret = next((each.encode() for each in SECRETS if each.encode() in raw), b"")
    assert secret in hidden
    assert bool(hidden) == bool(secret)


def test_gssapi_is_labelled() -> None:
    found = sasl_token(b"\x60\x82\x02\x00junk", "GSSAPI")
    assert found is not None
    assert found.name == "GSSAPI"


@given(st.binary(max_size=80), st.sampled_from([None, "PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI", "MINE"]))
def test_any_bytes_are_survived_and_tile(raw: bytes, mechanism: str | None) -> None:
    frame = struct.pack(">i", len(raw)) + raw
    assert_tiled(trace(frame, SASL_TOKEN, context=DecodingContext(mechanism=mechanism)))


@given(
    st.lists(st.sampled_from([b"n=", b"r=", b",", b"=", b"\x01auth=Bearer ", b"a.b.c", b"\x01", b"n,,", b"\0", b"x"]))
)
def test_any_pieces_of_tokens_are_survived_and_tile(pieces: list[bytes]) -> None:
    raw = b"".join(pieces)
    for mechanism in (None, "SCRAM-SHA-256", "OAUTHBEARER", "PLAIN"):
        assert_tiled(trace(struct.pack(">i", len(raw)) + raw, SASL_TOKEN, context=DecodingContext(mechanism=mechanism)))

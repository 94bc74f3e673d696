"""Secrets in JSON: what is masked, byte for byte, and near misses that are shown."""

import itertools
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.embedded import secret_names
from dissector.protocol.embedded.secret_names import MARKS, is_secret_name
from dissector.protocol.embedded.value_secrets import MOST_LEVELS, json_masks
from dissector.protocol.kernel.secret_marks import secret_marks
from tests.cases import cases

HIDDEN = "hUnTeR2-hUnTeR2"


def masked(value: bytes) -> bytes:
    out = bytearray(value)
    for mask in json_masks(value):
        out[mask.start : mask.end] = mask.content()
    assert len(out) == len(value)
    return bytes(out)


SECRETS = [
    {"properties": {"name": "sink", "connection.password": HIDDEN, "topics": "orders"}},
    {"properties": {"sasl.jaas.config": f'a.b.PlainLoginModule required password="{HIDDEN}";'}},
    {"properties": {"aws.secret.access.key": HIDDEN}},
    {"schema": {"type": "struct", "fields": [{"field": "apiKey"}]}, "payload": {"apiKey": HIDDEN}},
    {"connection.url": f"jdbc:mysql://db/shop?user=u&password={HIDDEN}"},
    {"connection.url": f"jdbc:sqlserver://db;user=u;password={HIDDEN};encrypt=true"},
    {"connection.url": f"jdbc:oracle:thin:scott/{HIDDEN}@//db:1521/x"},
    {"url": f"https://bob:{HIDDEN}@example.com/x"},
    {"url": f"https://example.com/x?client_secret={HIDDEN}&a=b"},
    {"key": HIDDEN, "algorithm": "HmacSHA256", "creation-timestamp": 1790000000000},
    {"schema": None, "payload": {"algorithm": "HmacSHA256", "creation-timestamp": 1, "key": HIDDEN}},
    {"list": [1, {"tokens": [HIDDEN, HIDDEN]}]},
    {"credentials": {"type": "basic", "user": HIDDEN, "more": [{"deep": HIDDEN}]}},
    {"configs": [{"name": "ssl.key.password", "value": HIDDEN}, {"value": HIDDEN, "name": "x-api-key"}]},
    {"headers": [f"Authorization: Bearer {HIDDEN}", f"Cookie: {HIDDEN}"]},
    {"a": json.dumps({"b": json.dumps({"c": [{"clientSecret": HIDDEN}]}), "é\n": 1})},
    [{"sessionToken": HIDDEN}],
    {"ssl.keystore.key": HIDDEN},
    {"value.converter.basic.auth.user.info": f"u:{HIDDEN}", "authUserInfo": HIDDEN, "authInfo": HIDDEN},
    {"config": f"a.b.PlainLoginModule required password='it\\'s;{HIDDEN}';"},
    {"connection.url": f"jdbc:sqlserver://db;user=u;password={{a;b{HIDDEN}}};encrypt=true"},
    {"raw": f"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {HIDDEN}\r\n\r\n"},
    {"yaml": f"db:\n  password: {HIDDEN}\n  user: u", "properties": f"a: b\nssl.key.password: {HIDDEN}"},
    {"tls": f"-----BEGIN RSA PRIVATE KEY-----\n{HIDDEN}\n-----END RSA PRIVATE KEY-----\n"},
    {"tls": f"-----BEGIN CERTIFICATE-----\nab\n-----BEGIN PRIVATE KEY-----\nDEK-Info: {HIDDEN}\n"},
    {"blob": f"https://a.blob.example.com/c?sv=1&sig={HIDDEN}&se=2", "jwt": HIDDEN, "x.sig": HIDDEN},
    {"Ocp-Apim-Subscription-Key": HIDDEN, "licenseKey": HIDDEN},
    {"headers": [{"name": "Cookie", "value": [HIDDEN]}, {"value": {"of": [HIDDEN]}, "key": "x-api-key"}]},
]


@cases(("value", "indent", "before"), itertools.product(SECRETS, [None, 2], [b"", b"\0\0\0\0\x07", b"  "]))
def test_secrets_are_masked_and_the_rest_is_shown(value: object, indent: int | None, before: bytes) -> None:
    raw = before + json.dumps(value, indent=indent).encode()
    found = masked(raw)
    assert (
        found == raw.replace(HIDDEN.encode(), b"*" * len(HIDDEN))
        or b"required" in raw
        or b"Bearer" in raw
        or b"a;b" in raw
        or b"BEGIN" in raw
        or b"u:" in raw
    )
    assert HIDDEN.encode() not in found
    json.loads(found[len(before) :])
    assert secret_marks().is_near(raw)


def test_secrets_are_masked_however_deep_they_are() -> None:
    for deep in (3, MOST_LEVELS - 1, MOST_LEVELS + 50):
        raw = b'{"a":[' * deep + b'{"password":"hunter2"}' + b"]}" * deep + b' {"x":"y"}'
        assert masked(raw) == raw.replace(b"hunter2", b"*" * 7)


def test_an_escaped_name_is_the_same_name() -> None:
    raw = b'{"p\\u0061ssword": "hunter2"}'
    assert masked(raw) == b'{"p\\u0061ssword": "*******"}'
    assert secret_marks().is_near(raw)


@pytest.mark.parametrize("raw", [
    rb'{"text":"password\u003dhUnTeR2"}', rb'{"text":"password\u003d\u0027hUnTeR2\u0027"}',
    rb'{"url":"https\u003a\u002f\u002fbob\u003ahUnTeR2\u0040example.com"}',
    rb'{"text":"a\u0026password\u003dhUnTeR2\u0026b"}',
])  # fmt: skip
def test_signs_may_be_escaped(raw: bytes) -> None:
    assert masked(raw) == raw.replace(b"hUnTeR2", b"*" * 7)
    assert secret_marks().is_near(raw)


@cases(("raw", "shown"), [
    (b'{"pin": 1234, "x": 1}', b'{"pin": 0.00, "x": 1}'),
    (b'{"pin": 12}', b'{"pin": -0}'),
    (b'{"pin": 1}', b'{"pin": 0}'),
    (b'{"password": "a\\"b"}', b'{"password": "****"}'),
    (b'{"password": "cut off', b'{"password": "*******'),
    (b'{"password":"abc"} {"token":"def"}', b'{"password":"***"} {"token":"***"}'),
])  # fmt: skip
def test_what_is_masked_stays_json_as_far_as_it_was(raw: bytes, shown: bytes) -> None:
    assert masked(raw) == shown


@cases("raw", [
    b"password=hunter2", b"the password is hunter2", b'{"text": "the password is hunter2"}',
    b'{"total_tokens": 123, "passenger": "x", "compass": "y", "author": "z", "keyboard": 1}',
    b'{"Secretary": "s", "secretariat": "t", "user_info": {"name": "Ann"}, "userInfo": "x", "author.info": "y"}',
    b'{"url": "https://example.com/a:b@c", "mail": "mailto:bob@example.com", "at": "12:30@home"}',
    b'{"field": "password", "type": "string"}', b'{"password": null, "secret": true}', b'{"key": "k", "value": "v"}',
    b'{"sig": 3, "sigma": "a", "design": "b", "jwt_issuer": "c", "license": "MIT", "subscription_id": "d"}',
    b'{"pem": "-----BEGIN CERTIFICATE-----\\nabc\\n-----END CERTIFICATE-----", "text": "a PRIVATE KEY\\nb"}',
    b'{"name": "topics", "value": "orders"}', b'{"algorithm": "x", "key": "y"}', b"", b"{", b'"', b"[[[", b'{"":""}',
    b'{"name": "topics", "value": ["orders", {"a": 1}]}', b'{"text": "a=b\\nthe password: is\\nx: y"}',
    b'{"text": "token{a;b} passenger={a} it=\'s"}', b'{"ssl.keystore.type": "PEM", "keystore": {"keys": 1}}',
    b'{"sasl.oauthbearer.token.endpoint.url": "https://login.example.com/token"}',
])  # fmt: skip
def test_near_misses_are_shown(raw: bytes) -> None:
    assert masked(raw) == raw


def test_json_in_texts_is_opened_to_a_depth_and_masked_below() -> None:
    value: object = {"password": HIDDEN}
    for _ in range(9):
        value = {"inner": json.dumps(value)}
    assert HIDDEN.encode() not in masked(json.dumps(value).encode())


@given(
    st.text(st.characters(max_codepoint=0x17F), max_size=24),
    st.sampled_from(["password", "x-api-key", "pwd", "idToken"]),
)
def test_every_secret_name_has_a_mark(word: str, name: str) -> None:
    for each in (word, name, f"{word}.{name}", name.upper() + word):
        if is_secret_name(each):
            assert secret_marks().is_near(b'{"' + each.encode() + b'":1}')


def test_marks_are_those_that_the_names_have() -> None:
    stems = {re.sub(rb"[^a-z]", b"", mark) for mark in MARKS}
    assert {b"passw", b"secret", b"apikey", b"cookie", b"pwd"} <= stems
    assert all(len(mark) >= 4 and mark == mark.lower() for mark in MARKS)
    assert set(MARKS) > secret_names.WORDS


@pytest.mark.parametrize("size", [9, 511, 512, 5000])
@cases("raw", [
    b'{"url":"https://oauth2:%s@example.com/x"}', b'{"url":"jdbc:ORACLE:thin:scott/%s@//h"}', b'{"url":"https://u:%s',
])  # fmt: skip
def test_what_is_masked_has_a_mark_however_long_it_is(raw: bytes, size: int) -> None:
    secret = (b"aB3." * size)[: min(size, 128) if b"ORACLE" in raw else size]
    found = json_masks(raw % secret, strict=True)
    assert [raw.index(b"%s")] == [each.start for each in found]
    assert secret_marks().is_near(raw % secret)


@pytest.mark.slow
@pytest.mark.parametrize("piece", [
    b"{", b'{"', b'{"a":', b"[", b'{"a":"\\"', b"a=", b"://a:", b"oracle:a:/", b'{"p":"{\\"', b'"', b"\\", b"@",
    b"\x01\x04\x00\x02",
])  # fmt: skip
def test_the_time_is_linear(piece: bytes) -> None:
    json_masks(piece * (200_000 // len(piece)))
    secret_marks().is_near(piece * (2_000_000 // len(piece)))

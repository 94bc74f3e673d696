"""Reasons of masked messages: without content; and which first fields are shown beside them."""

import struct

import pytest

from dissector.core.finding import Finding, Severity
from dissector.protocol.codec.writer import write
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.masked_reasons import LARGEST, reasons_of
from dissector.protocol.masking import MaskedFrame, mask_secrets
from dissector.protocol.message import read, trace
from dissector.protocol.message_layout import response_layout
from dissector.protocol.schema.api_keys import ApiKey
from tests.cases import cases
from tests.frames import response

HIDDEN = b"aB3dE6gH9jK2mN5p"
LOGIN = DecodingContext(may_have_secrets=True, has_secrets=True, may_cut_secrets=True)


def shown(key: int, version: int, body: bytes, context: DecodingContext = LOGIN) -> MaskedFrame:
    data = response(7, body)
    found = mask_secrets(data, len(data), response_layout(key, version, data), len(data), context)
    assert len(found.data) == len(data)
    return found


@cases(("words", "expected"), [
    ("name: length 24,930 runs past the end, at offset 24,930; 24,930 bytes could not be read",
     "name: length over 8,191 runs past the end, at offset 24,930; 24,930 bytes could not be read"),
    ("name: length 8,191 runs past the end, at offset 9; 1 byte could not be read", None),
    ("name: length -24,930 where null is not allowed, at offset 9; 1 byte could not be read",
     "name: length under -8,191 where null is not allowed, at offset 9; 1 byte could not be read"),
    ("tagged field 97,118: length 3 runs past the end, at offset 9; 1 byte could not be read",
     "tagged field over 8,191: length 3 runs past the end, at offset 9; 1 byte could not be read"),
])  # fmt: skip
def test_a_reason_has_no_number_of_two_letters(words: str, expected: str | None) -> None:
    [found] = reasons_of([Finding("malformed", Severity.ERROR, words), Finding("odd", Severity.NOTE, "x")])
    assert found.message == (expected or words)
    assert int.from_bytes(b"  ", "big") > LARGEST


def test_a_reason_has_no_tag_of_two_letters() -> None:
    [found] = reasons_of([Finding("malformed", Severity.ERROR, "x", "body.(tag 97118)[123456].name")])
    assert found.path == "body.(tag over 8,191)[123456].name"


def test_a_login_without_a_token_keeps_its_error() -> None:
    """spring-cloud-azure 649: a broker that sends null where a token should be."""
    text = b"Invalid SASL mechanism response"
    found = shown(36, 0, struct.pack(">hh", 58, len(text)) + text + struct.pack(">i", -1))
    data = found.data
    assert data[-4:] == b"****"
    decoded = read(data, found.layout)
    assert decoded.partial == {"error_code": 58, "error_message": text.decode()}
    assert found.layout.findings[0].message == (
        "auth_bytes: length -1 where null is not allowed, at offset 43; 4 bytes could not be read"
    )
    assert [each.code for each in trace(data, found.layout).findings] == ["malformed", "masked"]


def test_an_error_that_may_quote_a_secret_is_masked_with_all_behind_it() -> None:
    found = shown(36, 0, struct.pack(">hh", 58, len(HIDDEN)) + HIDDEN + struct.pack(">i", -1))
    assert HIDDEN[:6] not in found.data
    assert read(found.data, found.layout).partial == {"error_code": 58}


def test_the_first_fields_of_a_damaged_message_are_its_first_numbers_and_one_element() -> None:
    body = write("ApiVersionsResponse", 0, {"api_keys": [{"api_key": n, "max_version": 9} for n in range(4)]})
    found = shown(18, 0, body + HIDDEN)
    assert found.layout.masked_from == 8 + 8
    tree = trace(found.data, found.layout).tree
    assert [node.path for node in tree.walk() if not node.children and node.path.startswith("body")] == [
        "body.error_code", "body.api_keys.(count)", "body.api_keys[0].api_key",
    ]  # fmt: skip


@pytest.mark.long
@cases("version", range(3))
def test_less_than_six_bytes_of_a_neighbor_are_shown(version: int) -> None:
    """A token stands where most of a response was lost, behind its size."""
    token = struct.pack(">i", len(HIDDEN)) + HIDDEN
    for key in ApiKey:
        for cut in range(9):
            found = shown(key, version, bytes(cut) + token)
            if found.layout.masked_from is not None:
                assert HIDDEN[:6] not in found.data, (key, version, cut)

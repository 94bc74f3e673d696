"""Headers and bytes that are no frame, next to a login: which are believed, and what is masked behind them."""

import random
import string

import pytest

from dissector.protocol.masking import NEWER, is_sound
from dissector.protocol.message import read
from dissector.protocol.message_layout import (
    PREFIX,
    SASL_TOKEN,
    UNFRAMED,
    UNKNOWN_MESSAGE,
    UNKNOWN_RESPONSE,
    request_layout,
    response_layout,
)
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api
from tests.cases import cases
from tests.frames import request, response
from tests.protocol.masking import HEADER, LOGIN, OF_SCRAM, SCRAM, check_masked_from, masked, with_size, words


def test_a_message_with_secrets_whose_header_is_cut_keeps_what_a_header_begins_with() -> None:
    for end in range(PREFIX + 8, HEADER):
        found = masked(SCRAM, OF_SCRAM, end=end)
        check_masked_from(found, SCRAM, PREFIX + 8)
        assert found.layout.header is None
    unknown = SCRAM[:PREFIX] + b"\x7f\xff\0\x20" + SCRAM[PREFIX + 4 :]
    check_masked_from(masked(unknown, OF_SCRAM, end=HEADER), unknown, PREFIX)


def test_what_is_there_of_a_header_is_shown_where_the_capture_ends_in_its_client_id() -> None:
    for end in range(PREFIX + 8, PREFIX + 8 + 2 + len("tests")):
        part = SCRAM[:end]
        found = masked(part, OF_SCRAM, LOGIN, size=len(SCRAM))
        assert (found.data, found.layout.header) == (part, "RequestHeader")
        assert [each.code for each in read(part, found.layout).findings] == ["malformed"]
    odd = SCRAM[: PREFIX + 10] + b"te\1"
    assert masked(odd, OF_SCRAM, LOGIN, size=len(SCRAM)).layout.header is None
    long = SCRAM[: PREFIX + 8] + b"\x09\x09te"
    assert masked(long, OF_SCRAM, LOGIN, size=9_000).layout.header is None
    for start in (b"\0\x33\0\1", b"\x27\x11\0\0"):  # a version, and an API, that are not known
        unknown = SCRAM[:PREFIX] + start + SCRAM[PREFIX + 4 : PREFIX + 12]
        assert masked(unknown, OF_SCRAM, LOGIN, size=len(SCRAM)).layout.header is None
    assert masked(SCRAM[: PREFIX + 12], OF_SCRAM, LOGIN, size=len(SCRAM), end=PREFIX + 11).layout.header is None


def test_the_header_of_an_api_of_others_is_shown() -> None:
    """kafka-proxy 185: a vendor's API key. Its body is masked."""
    for version in (-1, 0, 1, 31, 32):
        data = request(1, api_key=10001, version=version, client_id=b"tests", body=b"hunter2")
        found = masked(data, request_layout(10001, version, data), LOGIN)
        if 0 <= version < 32:
            assert found.data == data.replace(b"hunter2", b"*" * 7)
            assert found.layout.header == "RequestHeader"
        else:
            check_masked_from(found, data, PREFIX)
            assert found.layout.header is None


TOKENS = {
    "PLAIN": (
        b"\0alice\0hunter2-hunter2", b"alice\0alice\0hunter2", b"\0a\0hunter2", b"ab\0bob\0hunter2", b"\0\0hunter2",
    ),
    "SCRAM": (b"n,,n=alice,r=abc", b"y,,n=alice,r=abc", b"p=tls-unique,,n=a,r=b", b"c=biws,r=abc,p=cHJvb2Y="),
    "OAUTHBEARER": (b"n,,\1host=kafka\1auth=Bearer abc\1\1", b"n,a=me,\1auth=Bearer abc\1\1", b"\1"),
    "GSSAPI": (
        bytes.fromhex("6082025806092a864886f71201020201006e82"), bytes.fromhex("606006092a864886f712010202020"[:28]),
        bytes.fromhex("0504 04ff 000c 0000 0000 0000 1234 5678".replace(" ", "")), bytes.fromhex("050400ff000c000c"),
    ),
}  # fmt: skip
"""First bytes of tokens, by mechanism: RFC 4616, RFC 5802, RFC 7628, RFC 4121 and RFC 2743."""


@pytest.mark.long
@cases("mechanism", TOKENS)
def test_no_token_of_a_login_is_a_header(mechanism: str) -> None:
    chance = random.Random(mechanism)
    for token in TOKENS[mechanism]:
        for _ in range(200):
            word = "".join(chance.choices(string.printable[:94], k=chance.randint(12, 200))).encode()
            data = with_size(bytes(4) + token + word)
            key, version = (int.from_bytes(data[at : at + 2], "big", signed=True) for at in (PREFIX, PREFIX + 2))
            layout = request_layout(key, version, data)
            for size in (len(data), len(data) + 1):
                found = masked(data, layout._replace(unread=UNKNOWN_MESSAGE), LOGIN, size=size)
                assert found.layout.header is None, (token, word)


@cases(("version", "start"), [(0, HEADER), (NEWER, HEADER), (NEWER + 1, PREFIX), (-1, PREFIX)])
def test_the_header_of_a_request_is_shown_if_its_version_may_be_one_some_day(version: int, start: int) -> None:
    known = api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
    assert known is not None
    assert known.versions.high == 0
    data = SCRAM[: PREFIX + 2] + version.to_bytes(2, "big", signed=True) + SCRAM[PREFIX + 4 :]
    layout = OF_SCRAM._replace(unread=OF_SCRAM.body)
    check_masked_from(masked(data, layout), data, start)


def test_a_guess_says_no_more_than_its_header() -> None:
    layout = request_layout(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 1)
    data = SCRAM[: PREFIX + 3] + b"\1" + SCRAM[PREFIX + 4 :]
    found = masked(data, layout)
    check_masked_from(found, data, HEADER)
    assert layout.unread is not None
    [first, _] = words(found)
    assert first.endswith(": only the header can be read")
    assert first.startswith("unknown-version: ")


def test_bytes_that_are_no_frame_are_masked_where_a_login_may_be() -> None:
    data = b"who knows what this is"
    check_masked_from(masked(data, UNFRAMED, LOGIN), data, 0)
    assert masked(data, UNFRAMED).data == data
    token = response(1, b"\0ann\0hunter2")
    check_masked_from(masked(token, SASL_TOKEN, size=len(token) + 1), token, PREFIX)


def test_a_response_without_its_request_keeps_its_id_if_it_is_whole() -> None:
    data = response(7, b"hunter2")
    check_masked_from(masked(data, UNKNOWN_RESPONSE), data, PREFIX + 4)
    check_masked_from(masked(data, UNKNOWN_RESPONSE, size=len(data) + 1), data, PREFIX)
    check_masked_from(masked(data, UNKNOWN_RESPONSE, end=len(data) - 1), data, PREFIX)
    short = data[: PREFIX + 3]
    assert masked(short, UNKNOWN_RESPONSE._replace(unread="AlterConfigsResponse")).data == short


def test_a_client_id_with_a_tab_is_one() -> None:
    data = request(1, version=1, client_id=b"a\tb")
    assert masked(data, request_layout(ApiKey.METADATA, 1), LOGIN).data == data
    assert is_sound({"client_id": "te\tsts"})
    secret = SCRAM.replace(b"tests", b"te\tts")
    assert masked(secret, OF_SCRAM).layout == OF_SCRAM


@cases("client_id", [b"a\nb", b"a\x7fb", b"a\0b"])
def test_a_header_with_bytes_that_no_client_sends_is_not_believed_where_a_login_may_be(client_id: bytes) -> None:
    data = request(1, version=1, client_id=client_id)
    layout = request_layout(ApiKey.METADATA, 1)
    assert masked(data, layout).data == data
    check_masked_from(masked(data, layout, LOGIN), data, PREFIX + 8)


def test_a_header_is_sound_if_it_has_fields_and_only_those_it_may_have() -> None:
    assert is_sound({"client_id": "tests", "correlation_id": 7})
    assert not is_sound({})
    assert not is_sound({"client_id": "te\nsts"})


def test_a_response_whose_header_can_not_be_read_keeps_its_id() -> None:
    layout = response_layout(ApiKey.DESCRIBE_CONFIGS, 4, b"")
    assert layout.header_version == 1
    for data in (response(7, b"\xff" * 20), response(7, b"\1\0\1x" + bytes(20))):  # tagged fields: too many, unknown
        check_masked_from(masked(data, layout), data, PREFIX + 4)

"""Messages with secrets, cut at each byte, with bytes too many, next to a login: what is masked, and from where on."""

import random
import string
from dataclasses import replace

import pytest

import dissector
from dissector.core.finding import Finding, Severity
from dissector.protocol import masking, message
from dissector.protocol.codec.tracer import Tracer
from dissector.protocol.embedded.context import EMPTY_CONTEXT, DecodingContext
from dissector.protocol.masked_reasons import OVER_LIMIT
from dissector.protocol.masking import NEWER, MaskedFrame, is_public, is_sound, mask_secrets
from dissector.protocol.message import (
    PREFIX,
    SASL_TOKEN,
    UNFRAMED,
    UNKNOWN_MESSAGE,
    UNKNOWN_RESPONSE,
    MessageLayout,
    read,
    request_layout,
    response_layout,
    trace,
    tracer_of_reasons,
)
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api
from dissector.protocol.schema.model import Field
from dissector.protocol.tree import Node
from tests.cases import cases
from tests.frames import request, response

SALT, PASSWORD = b"pepper-and-salt", b"hunter2-hunter2"
UPSERTION = {"name": "ann", "mechanism": 1, "iterations": 4096, "salt": SALT, "salted_password": PASSWORD}
SCRAM = dissector.encode_request(
    "AlterUserScramCredentials", 0, {"deletions": [], "upsertions": [UPSERTION]}, correlation_id=7, client_id="tests"
)
OF_SCRAM = request_layout(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0)
HEADER = PREFIX + 8 + 2 + len("tests") + 1
"""Bytes of its header, with its tagged fields."""
METADATA = dissector.encode_request(
    "Metadata", 9, {"topics": [{"name": "orders"}], "allow_auto_topic_creation": True}, client_id="tests"
)
OF_METADATA = request_layout(ApiKey.METADATA, 9)
LOGIN = DecodingContext(may_have_secrets=True)
CUT_LOGIN = DecodingContext(may_have_secrets=True, may_cut_secrets=True)


def masked(
    data: bytes, layout: MessageLayout, context: DecodingContext = EMPTY_CONTEXT, *, size: int | None = None,
    end: int | None = None,
) -> MaskedFrame:  # fmt: skip
    """A frame that is whole, if nothing else is said."""
    whole = len(data) if size is None else size
    found = mask_secrets(data, whole, layout, len(data) if end is None else end, context)
    assert len(found.data) == len(data)
    return found


def words(found: MaskedFrame) -> list[str]:
    return [f"{each.code}: {each.message}" for each in found.layout.findings]


def check_masked_from(found: MaskedFrame, data: bytes, start: int, body: str | None = None) -> None:
    assert found.data == data[:start] + b"*" * (len(data) - start)
    assert found.layout.masked_from == start
    assert (found.layout.body, found.layout.token) == (body, False)
    assert words(found)[-1] == secret_words(len(data) - start)


def secret_words(count: int) -> str:
    return f"masked: masked: {count} byte{'s' * (count != 1)} that may hold a secret; --show-secrets shows them"


def with_size(data: bytes, more: bytes = b"") -> bytes:
    return (len(data) - PREFIX + len(more)).to_bytes(4, "big") + data[PREFIX:] + more


def test_of_a_message_that_is_understood_the_secret_fields_are_masked() -> None:
    found = masked(SCRAM, OF_SCRAM)
    assert found == MaskedFrame(SCRAM.replace(SALT, b"*" * len(SALT)).replace(PASSWORD, b"*" * len(PASSWORD)), OF_SCRAM)


def test_a_message_with_secrets_is_masked_behind_its_first_count_wherever_it_is_cut() -> None:
    count = HEADER + 1
    check_masked_from(masked(SCRAM, OF_SCRAM, end=HEADER), SCRAM, HEADER)
    for cut in range(count, len(SCRAM)):
        found = masked(SCRAM, OF_SCRAM, end=cut)
        check_masked_from(found, SCRAM, count, OF_SCRAM.body)
        assert words(found)[0].startswith("malformed: ")
        assert f", at offset {cut}; " in words(found)[0] or "runs past the end, at offset" in words(found)[0]
        if cut > count:
            check_masked_from(masked(SCRAM[:cut], OF_SCRAM, size=len(SCRAM)), SCRAM[:cut], count, OF_SCRAM.body)
    check_masked_from(masked(SCRAM, OF_SCRAM, size=len(SCRAM) + 1), SCRAM, count, OF_SCRAM.body)
    found = masked(SCRAM[:HEADER], OF_SCRAM, size=len(SCRAM))
    assert (found.data, found.layout.body, found.layout.masked_from) == (SCRAM[:HEADER], None, None)


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


@cases(("more", "reason"), [
    (b"x", "trailing-bytes: 1 byte after the last field, at offset 65"),
    (b"", "malformed: salted_password: length 15 runs past the end, at offset 47; 15 bytes could not be read"),
])  # fmt: skip
def test_of_a_message_with_secrets_that_does_not_end_with_its_fields_the_reason_is_shown(
    more: bytes, reason: str
) -> None:
    data = with_size(SCRAM, more) if more else with_size(SCRAM[:-3])
    found = masked(data, OF_SCRAM)
    check_masked_from(found, data, HEADER + 1, OF_SCRAM.body)
    assert words(found)[:-1] == [reason]
    assert found.layout.header == OF_SCRAM.header


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


def test_a_message_without_secrets_is_shown_unless_a_login_may_be_in_it() -> None:
    for context in (EMPTY_CONTEXT, LOGIN, CUT_LOGIN):
        found = masked(METADATA, OF_METADATA, context)
        assert (found.data, found.layout) == (METADATA, OF_METADATA)
    for data in (with_size(METADATA, b"12345"), with_size(METADATA[:-2])):
        assert masked(data, OF_METADATA).data == data
        check_masked_from(masked(data, OF_METADATA, LOGIN), data, HEADER + 1, OF_METADATA.body)


def test_bytes_that_are_no_more_than_the_size_of_another_message_hide_no_fields_before_them() -> None:
    for more in (b"x", b"1234"):
        data = with_size(METADATA, more)
        for context in (LOGIN, CUT_LOGIN):
            found = masked(data, OF_METADATA, replace(context, has_secrets=True))
            check_masked_from(found, data, len(METADATA), OF_METADATA.body)
            assert words(found)[0].startswith("trailing-bytes: ")


@pytest.mark.parametrize("more", [b"x", b"1234"])
def test_such_bytes_are_shown_until_a_login_is_known(more: bytes) -> None:
    empty = dissector.encode_request("ApiVersions", 0, {}, client_id="kcat-")
    for whole, layout in ((METADATA, OF_METADATA), (empty, request_layout(ApiKey.API_VERSIONS, 0))):
        for context in (LOGIN, CUT_LOGIN):
            data = with_size(whole, more)
            assert masked(data, layout, context).data == data
            longer = with_size(whole, b"12345")
            assert b"12345" not in masked(longer, layout, context).data


def test_of_a_cut_message_without_secrets_the_fields_before_the_cut_are_shown_behind_a_harmless_request() -> None:
    name = METADATA.index(b"orders")
    for end, least in ((len(METADATA) - 1, name + 6), (name + 6, name + 6), (name + 3, HEADER + 1)):
        assert masked(METADATA, OF_METADATA, end=end).data == METADATA
        check_masked_from(masked(METADATA, OF_METADATA, CUT_LOGIN, end=end), METADATA, HEADER + 1, OF_METADATA.body)
        found = masked(METADATA, OF_METADATA, LOGIN, end=end)
        shown = found.layout.masked_from
        assert shown is not None
        assert least <= shown <= end
        assert found.data == METADATA[:shown] + b"*" * (len(METADATA) - shown)
        assert found.layout.body == OF_METADATA.body
        assert words(found)[0].startswith("malformed: ")
        assert words(found)[1:] == [secret_words(len(METADATA) - shown)]


def test_what_is_there_of_a_message_without_secrets_is_shown_unless_a_login_may_be_what_was_cut() -> None:
    """The capture has no more of it, other than where bytes are there that can't be read."""
    for end in range(HEADER + 2, len(METADATA)):
        part = METADATA[:end]
        found = masked(part, OF_METADATA, LOGIN, size=len(METADATA))
        assert (found.data, found.layout) == (part, OF_METADATA)
        hidden = masked(part, OF_METADATA, CUT_LOGIN, size=len(METADATA))
        start = hidden.layout.masked_from
        assert start in (HEADER, HEADER + 1)
        assert hidden.data == part[:start] + b"*" * (len(part) - start)


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


def test_a_message_is_public_if_neither_it_nor_its_connection_has_secrets() -> None:
    assert is_public(OF_METADATA, EMPTY_CONTEXT)
    assert not is_public(OF_METADATA, LOGIN)
    assert not is_public(OF_SCRAM, EMPTY_CONTEXT)
    assert not is_public(SASL_TOKEN, EMPTY_CONTEXT)
    assert not is_public(UNKNOWN_RESPONSE, EMPTY_CONTEXT)
    assert not is_public(OF_METADATA._replace(unread="MetadataRequest"), EMPTY_CONTEXT)


def test_more_fields_than_a_message_may_have_are_masked_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    over = Finding(OVER_LIMIT, Severity.WARNING, "more than 1,000,000 fields")
    monkeypatch.setattr(masking, "trace", lambda *args, **kinds: replace(trace(*args, **kinds), findings=[over]))
    found = masked(SCRAM, OF_SCRAM)
    check_masked_from(found, SCRAM, HEADER + 1, OF_SCRAM.body)
    assert words(found)[:-1] == ["over-limit: more than 1,000,000 fields"]


def test_a_text_that_no_client_sends_hides_a_message_with_secrets() -> None:
    data = SCRAM.replace(b"ann", b"a\nn")
    check_masked_from(masked(data, OF_SCRAM), data, HEADER)


def test_of_a_guess_without_secrets_all_is_shown_and_of_one_with_secrets_nothing() -> None:
    guess = Finding("unknown-version", Severity.NOTE, "version 9: read as 0")
    other = Finding("odd", Severity.NOTE, "one: two")
    plain = OF_METADATA._replace(unread="MetadataRequest", findings=(guess, other))
    assert masked(METADATA, plain) == MaskedFrame(METADATA, plain)
    found = masked(SCRAM, OF_SCRAM._replace(unread=OF_SCRAM.body, findings=(guess, other)))
    assert words(found)[:-1] == [
        "unknown-version: version 9: only the header can be read",
        "odd: one: two",
    ]
    for layout in (OF_SCRAM, OF_SCRAM._replace(unread=OF_SCRAM.body, body=None)):
        found = masked(SCRAM, layout._replace(findings=(guess, other)), size=len(SCRAM) + 1)
        assert found.layout.findings[:-1] == (guess, other)


def test_a_message_without_secrets_that_is_there_up_to_its_last_field_is_shown() -> None:
    for context, is_shown in ((LOGIN, True), (CUT_LOGIN, False)):
        found = masked(METADATA, OF_METADATA, context, size=len(METADATA) + 1)
        assert (found.data == METADATA) == is_shown
        assert (found.layout == OF_METADATA) == is_shown
        assert bool(found.decoded and found.decoded.body) == is_shown


def test_a_response_whose_header_can_not_be_read_keeps_its_id() -> None:
    layout = response_layout(ApiKey.DESCRIBE_CONFIGS, 4, b"")
    assert layout.header_version == 1
    for data in (response(7, b"\xff" * 20), response(7, b"\1\0\1x" + bytes(20))):  # tagged fields: too many, unknown
        check_masked_from(masked(data, layout), data, PREFIX + 4)


def test_what_has_no_bytes_behind_its_header_is_no_token_any_more() -> None:
    for data in (b"", SCRAM[:PREFIX]):
        found = masked(data, SASL_TOKEN, size=9)
        assert (found.data, found.layout) == (data, SASL_TOKEN._replace(token=False))


def test_what_the_metadata_log_shows_without_secrets_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = read(SCRAM, OF_SCRAM, len(SCRAM))
    monkeypatch.setattr(masking, "without_secrets", lambda *_: decoded)
    assert masked(SCRAM, OF_SCRAM) == MaskedFrame(SCRAM, OF_SCRAM, decoded)


def test_a_size_that_takes_in_other_messages_shows_none_of_them() -> None:
    """Nothing of the capture is behind it, so it looks cut; but its body is there to the last field."""
    whole = request(1, api_key=48, version=0, body=bytes(4) + b"\0")
    data = (8_323_203 - PREFIX).to_bytes(4, "big") + whole[PREFIX:] + request(2, api_key=51, body=b"hunter2" * 9)
    context = replace(LOGIN, may_cut_secrets=False)
    found = masked(data, request_layout(48, 0, data), context, size=8_323_203)
    assert found.data[: len(whole)] == data[: len(whole)]
    assert b"hunter2" not in found.data


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_cut_login_whose_api_is_damaged_shows_less_than_six_bytes_of_its_token(version: int) -> None:
    """Whatever API and version its header has by then, and wherever it is cut."""
    secret = b"2g1Sf5%hunter2-hunter2"
    login = dissector.encode_request("SaslAuthenticate", version, {"auth_bytes": secret}, client_id="fuzz")
    seen = [secret[at : at + 6] for at in range(len(secret) - 5)]
    for other in range(93):
        known = api(other)
        for number in range(known.versions.low, known.versions.high + 1) if known and other != 36 else ():
            damaged = login[:PREFIX] + other.to_bytes(2, "big") + number.to_bytes(2, "big") + login[PREFIX + 4 :]
            layout = request_layout(other, number)
            for size in (len(login) - 1, len(login) - len(secret) // 2):
                found = masked(damaged[:size], layout, CUT_LOGIN, size=len(login))
                assert not [each for each in seen if each in found.data], (other, number, size)


def test_a_large_message_that_is_cut_is_searched_without_its_whole_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree of a megabyte takes seconds. What is masked, and why, is what the whole tree says."""
    nodes: list[str] = []
    began = Tracer.begin

    def begin(self: Tracer, parent: Node, name: str, kind: str, schema: Field | None = None) -> Node:
        nodes.append(name)
        return began(self, parent, name, kind, schema)

    monkeypatch.setattr(Tracer, "begin", begin)
    topics = [{"name": f"t-{n}", "partitions": [{"partition_index": 0, "isr_nodes": [1, 2]}]} for n in range(300)]
    whole = dissector.encode_response("Metadata", 9, {"brokers": [], "topics": topics})
    layout = response_layout(ApiKey.METADATA, 9, whole)
    for context in (LOGIN, CUT_LOGIN):
        nodes.clear()
        found = masked(whole[:-1], layout, context, size=len(whole))
        few = len(nodes)
        monkeypatch.setattr(masking, "tracer_of_reasons", lambda _layout: Tracer)
        monkeypatch.setattr(message, "tracer_of_reasons", lambda _layout: Tracer)
        assert masked(whole[:-1], layout, context, size=len(whole)) == found
        monkeypatch.setattr(masking, "tracer_of_reasons", tracer_of_reasons)
        monkeypatch.setattr(message, "tracer_of_reasons", tracer_of_reasons)
        assert few < 150 < 300 * 12 < len(nodes)

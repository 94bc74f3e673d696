"""Messages without secrets, whole and cut: what of them is shown, and what a login on the connection hides."""

from dataclasses import replace

import pytest

import dissector
from dissector.core.finding import Finding, Severity
from dissector.protocol import masking, message
from dissector.protocol.codec.tracer import Tracer
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.masking import MaskedFrame, is_public
from dissector.protocol.message import read, tracer_of_reasons
from dissector.protocol.message_layout import PREFIX, SASL_TOKEN, UNKNOWN_RESPONSE, request_layout, response_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.model import Field
from dissector.protocol.tree import Node
from tests.frames import request
from tests.protocol.masking import (
    CUT_LOGIN,
    HEADER,
    LOGIN,
    METADATA,
    OF_METADATA,
    OF_SCRAM,
    SCRAM,
    check_masked_from,
    masked,
    secret_words,
    with_size,
    words,
)


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


def test_a_message_is_public_if_neither_it_nor_its_connection_has_secrets() -> None:
    assert is_public(OF_METADATA, EMPTY_CONTEXT)
    assert not is_public(OF_METADATA, LOGIN)
    assert not is_public(OF_SCRAM, EMPTY_CONTEXT)
    assert not is_public(SASL_TOKEN, EMPTY_CONTEXT)
    assert not is_public(UNKNOWN_RESPONSE, EMPTY_CONTEXT)
    assert not is_public(OF_METADATA._replace(unread="MetadataRequest"), EMPTY_CONTEXT)


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

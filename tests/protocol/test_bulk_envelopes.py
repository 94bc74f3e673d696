"""Of Envelope messages that are found to be clean, the decoder masks nothing as a whole."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dissector
from dissector.capture_session import Capture
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.bulk_envelopes import NO_API, CleanEnvelopes
from dissector.protocol.codec.program import message_program
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.embedded.formats import enveloped
from dissector.protocol.kernel.shredding import FrameMemory
from dissector.protocol.masking import mask_secrets
from dissector.protocol.message_layout import PREFIX, MessageLayout, request_layout
from dissector.protocol.schema.api_keys import ApiKey
from tests.conftest import PCAPS

BODY = PREFIX + 8
"""Where damage begins."""
CREATE_ACLS = ApiKey.CREATE_ACLS << 16 | 3
ACL = {
    "resource_type": 2, "resource_name": "orders", "resource_pattern_type": 3, "principal": "User:ann", "host": "*",
    "operation": 3, "permission_type": 3,
}  # fmt: skip
PRINCIPAL = b"\x00\x00\x05User\x04ann\x00\x00"


@cache
def recorded() -> list[tuple[ExchangeMessage, ExchangeMessage]]:
    with Capture([str(PCAPS / "kraft-quorum.pcapng")], show_secrets=True) as capture:
        found = [(each.request, each.response) for each in capture.exchanges("api == Envelope")]
    return [(request, response) for request, response in found if request and response]


def are_clean(layout: MessageLayout, frames: list[bytes], kind: int | None = None) -> list[bool]:
    """Which requests are clean; which responses, to requests that carry one of a kind."""
    assert layout.header is not None
    assert layout.body is not None
    program = message_program(layout.header, layout.header_version, layout.body, layout.body_version)
    sizes = np.array([len(each) for each in frames], np.int64)
    memory = FrameMemory.of_buffer(np.frombuffer(b"".join(frames), np.uint8), np.cumsum(sizes) - sizes, sizes)
    clean = CleanEnvelopes()
    if kind is None:
        return clean.requests(memory, program).tolist()
    return clean.responses(memory, program, np.full(len(frames), kind)).tolist()


def kind_of(request: ExchangeMessage) -> int:
    found = enveloped(request.body)
    assert found is not None
    return found[0] << 16 | found[1]


def is_masked_whole(layout: MessageLayout, data: bytes, kind: int | None = None) -> bool:
    context = replace(EMPTY_CONTEXT, may_have_secrets=True, has_secrets=True, may_cut_secrets=True)
    if kind is not None:
        context = replace(context, enveloped=(kind >> 16, kind & 0xFFFF))
    return mask_secrets(data, len(data), layout, len(data), context).layout.masked_from is not None


def envelope(inner: bytes, principal: bytes | None = PRINCIPAL) -> bytes:
    body = {
        "request_data": inner.hex(), "request_principal": None if principal is None else principal.hex(),
        "client_host_address": "7f000001",
    }  # fmt: skip
    return bytes(dissector.encode_request("Envelope", 0, body, correlation_id=7, client_id="1"))


def acl_request(client_id: str = "admin", version: int = 3, api: str = "CreateAcls") -> bytes:
    body = {"creations": [ACL]} if api == "CreateAcls" else {}
    request = dissector.encode_request(api, version, body, correlation_id=3, client_id=client_id)
    return bytes(request)[PREFIX:]


def test_recorded_envelopes_are_clean() -> None:
    assert len(recorded()) > 4
    for request, response in recorded():
        assert are_clean(request.layout, [request.data]) == [True]
        assert are_clean(response.layout, [response.data], kind_of(request)) == [True]


def test_kinds_are_those_of_the_requests_inside() -> None:
    frames = [request.data for request, _ in recorded()] + [envelope(b"\x00\x1e\x00")]
    layout = request_layout(ApiKey.ENVELOPE, 0)
    program = message_program("RequestHeader", layout.header_version, "EnvelopeRequest", 0)
    sizes = np.array([len(each) for each in frames], np.int64)
    memory = FrameMemory.of_buffer(np.frombuffer(b"".join(frames), np.uint8), np.cumsum(sizes) - sizes, sizes)
    expected = [kind_of(request) for request, _ in recorded()] + [NO_API]
    assert CleanEnvelopes().kinds(memory, program).tolist() == expected


@pytest.mark.parametrize(
    ("data", "is_clean"),
    [
        (envelope(acl_request()), True),
        (envelope(acl_request(), None), True),
        (envelope(acl_request("a\x1fb")), False),
        (envelope(acl_request("a b")), True),
        (envelope(acl_request()[:-1]), False),
        (envelope(acl_request() + b"\x00"), False),
        (envelope(b"\x00\x1e\x00\x63" + acl_request()[4:]), False),
        (envelope(acl_request(), b"\x00"), False),
        (envelope(acl_request(), b"\x00\x01" + PRINCIPAL[2:]), False),
        (envelope(acl_request(), PRINCIPAL[:-1]), False),
        (envelope(acl_request(), PRINCIPAL.replace(b"ann", b"a\nn")), False),
        (envelope(b"\x00\x1e\x00"), False),
        (envelope(envelope(acl_request())[PREFIX:]), False),
        (envelope(acl_request(api="Produce", version=9)), False),
    ],
)
def test_what_is_not_read_to_its_end_or_is_doubtful_is_not_clean(data: bytes, is_clean: bool) -> None:
    layout = request_layout(ApiKey.ENVELOPE, 0)
    assert are_clean(layout, [data]) == [is_clean]
    assert not (is_clean and is_masked_whole(layout, data))


def test_a_response_without_its_request_is_not_clean() -> None:
    request, response = recorded()[0]
    kinds = [NO_API, kind_of(request) + 1, ApiKey.ENVELOPE << 16, ApiKey.FETCH << 16 | 12]
    assert not any(are_clean(response.layout, [response.data], kind)[0] for kind in kinds)


@given(
    number=st.integers(0, 1 << 8), is_request=st.booleans(),
    damage=st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=3),
)  # fmt: skip
def test_what_is_masked_as_a_whole_is_not_clean(number: int, is_request: bool, damage: list[tuple[int, int]]) -> None:
    request, response = recorded()[number % len(recorded())]
    message, kind = (request, None) if is_request else (response, kind_of(request))
    data = bytearray(message.data)
    for at, value in damage:
        data[BODY + at % (len(data) - BODY)] = value
    if is_masked_whole(message.layout, bytes(data), kind):
        assert are_clean(message.layout, [bytes(data)], kind) == [False]

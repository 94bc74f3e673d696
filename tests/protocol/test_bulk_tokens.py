"""Of messages of SaslAuthenticate whose token is found to be clean, the decoder masks nothing but secrets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import dissector
from dissector.protocol.bulk_tokens import CleanTokens
from dissector.protocol.codec.program import message_program
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.kernel.shredding import FrameMemory
from dissector.protocol.masking import mask_secrets
from dissector.protocol.message import PREFIX, request_layout
from dissector.protocol.schema.api_keys import ApiKey
from tests.cases import cases

MECHANISMS = (None, "PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI", "OTHER")
CLEAN = {
    "plain": b"\x00ann\x00hunter2",
    "scram": b"n,,n=ann,r=fyko+d2lbbFgONRv9qkxdawL",
    "bearer": b"n,,\x01auth=Bearer abc.def.ghi\x01\x01",
    "error": b'{"status": "invalid_token"}',
    "none": b"",
}
DOUBTFUL = {
    "tab in a name": b"n,,n=a\tnn,r=fyko",
    "delete in a name": b"n,a=an\x7fn,n=ann,r=fyko",
    "no UTF-8": b"n,,n=a\xffnn,r=fyko",
    "lines of an error": b'{\n"status": "invalid_token"}',
    "last byte": b"n,,n=ann,r=fyko\x02",
}


def frame(token: bytes, version: int) -> bytes:
    data = dissector.encode_request(
        "SaslAuthenticate", version, {"auth_bytes": token.hex()}, correlation_id=7, client_id="tests"
    )
    return bytes(data)


def are_clean(frames: list[bytes], version: int) -> list[bool]:
    layout = request_layout(ApiKey.SASL_AUTHENTICATE, version)
    assert layout.header is not None
    assert layout.body is not None
    program = message_program(layout.header, layout.header_version, layout.body, layout.body_version)
    sizes = np.array([len(each) for each in frames], np.int64)
    memory = FrameMemory.of_buffer(np.frombuffer(b"".join(frames), np.uint8), np.cumsum(sizes) - sizes, sizes)
    return CleanTokens().of(memory, program).tolist()


def is_masked_whole(data: bytes, version: int, mechanism: str | None) -> bool:
    layout = request_layout(ApiKey.SASL_AUTHENTICATE, version)
    context = DecodingContext(mechanism=mechanism, may_have_secrets=True, has_secrets=True, may_cut_secrets=True)
    return mask_secrets(data, len(data), layout, len(data), context).layout.masked_from is not None


@cases("version", [0, 2])
def test_tokens_of_mechanisms_are_clean_and_others_are_not(version: int) -> None:
    tokens = [*CLEAN.values(), *DOUBTFUL.values()]
    found = are_clean([frame(each, version) for each in tokens], version)
    assert found == [True] * len(CLEAN) + [False] * len(DOUBTFUL)


def test_a_message_that_does_not_fit_is_not_clean() -> None:
    data = frame(CLEAN["scram"], 0)
    longer = (len(data) + 1 - PREFIX).to_bytes(4, "big") + data[PREFIX:] + b"x"
    assert are_clean([data[:-1], longer, data], 0) == [False, False, True]


PIECES = st.sampled_from([
    *CLEAN.values(), *DOUBTFUL.values(), b"n,,", b"n=", b"a=", b",", b"r=x", b"\x00", b"\x01", b"auth=Bearer ",
    b"host=", b"{", b'"status"', b"\n", b"\x7f", b"\xff", b"ann",
])  # fmt: skip


@given(
    token=st.lists(PIECES | st.binary(max_size=4), max_size=6).map(b"".join), mechanism=st.sampled_from(MECHANISMS),
    version=st.integers(0, 2),
)  # fmt: skip
def test_what_is_masked_as_a_whole_is_not_clean(token: bytes, mechanism: str | None, version: int) -> None:
    data = frame(token, version)
    if is_masked_whole(data, version, mechanism):
        assert are_clean([data], version) == [False]

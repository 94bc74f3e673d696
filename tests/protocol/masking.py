"""Messages with secrets and without, and what their masking is compared with."""

import dissector
from dissector.protocol.embedded.context import EMPTY_CONTEXT, DecodingContext
from dissector.protocol.masking import MaskedFrame, mask_secrets
from dissector.protocol.message_layout import PREFIX, MessageLayout, request_layout
from dissector.protocol.schema.api_keys import ApiKey

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

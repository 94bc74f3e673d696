"""Which requests are harmless: of an API without secrets, and nothing else to their last byte. A broker takes none
before a login, so `secrecy` learns from them that a connection has no secrets.

Invariant: what is not understood is not harmless.
"""

from functools import cache
from typing import Final

from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.embedded.secrets import (
    may_hold_secrets,
    may_name_metadata_log,
    names_metadata_log,
)
from dissector.protocol.masking import has_header
from dissector.protocol.message import read, request_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import apis

OF_QUORUM: Final = (ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH, ApiKey.UPDATE_RAFT_VOTER)
"""What brokers and controllers send on connections on which they fetch the metadata log (KIP-595, KIP-853)."""


@cache
def secret_keys() -> frozenset[int]:
    """The keys of APIs that have secrets, in a request or in a response, or are sent where the metadata log is fetched;
    of records only that log has some."""
    names = {each.key: (each.request, each.response) for each in apis()}
    keys = (key for key, both in names.items() if any(may_hold_secrets(name, b"", EMPTY_CONTEXT) for name in both))
    return frozenset((*keys, *OF_QUORUM, ApiKey.SASL_HANDSHAKE))


def is_harmless(key: int, version: int, data: bytes, whole: int, *, is_whole: bool) -> bool:
    """Whether these bytes, of which so many are in front of the first gap, are a harmless request of an API without
    secrets; of one that is there in part, whether its header is one. In a whole Fetch, numbers may look like the topic
    id of the metadata log (`metadata_fetches`)."""
    layout = request_layout(key, version, data)
    if layout.body is None or layout.unread is not None:
        return False
    if not is_whole:
        return has_header(data, layout, whole) and not names_metadata_log(data)
    found = read(data, layout, whole)
    is_fetch = key == ApiKey.FETCH
    names_log = may_name_metadata_log(found.body.get("topics")) if is_fetch else names_metadata_log(data)
    return not (found.rest or found.findings or names_log)

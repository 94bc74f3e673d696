"""Formats of bytes fields. A new format is a function and a line in `FORMATS`.

A format yields candidates, the likeliest first. The first that reads to the end of the bytes is taken; else, if the
protocol is known, the first whose last fields are missing: kafka-go writes version 1 of a subscription so. If nothing
says which protocol a group uses (SyncGroup before version 5, a capture from the middle), all are tried: group protocols
begin with a small version and can't be read as each other.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.embedded.messages import DECODED, EmbeddedMessage, EmbeddedMessages, Scope, newest_version
from dissector.protocol.embedded.sasl import sasl_token
from dissector.protocol.embedded.subtree import Subtree
from dissector.protocol.primitives import INT16
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.headers import request_header_version, response_header_version
from dissector.protocol.schema.loader import api

Candidates = Iterator[EmbeddedMessages | Subtree]
Format = Callable[[bytes, Scope, DecodingContext], Candidates]
_VERSION: Final = (("version", INT16),)


def versioned(message: str, raw: bytes, *, may_end_early: bool = False) -> Iterator[EmbeddedMessages]:
    """Yield a message behind its version as INT16. Unknown, newer versions only add fields: the known ones are read."""
    version = int.from_bytes(raw[:2], "big", signed=True)
    newest = newest_version(message)
    if version >= 0 and len(raw) >= 2:
        yield EmbeddedMessages(
            _VERSION,
            (EmbeddedMessage(DECODED, message, min(version, newest)),),
            whole=version <= newest,
            may_end_early=may_end_early,
        )


def exact(message: str, version: int) -> EmbeddedMessages:
    """Return a message of a version that is known from elsewhere."""
    return EmbeddedMessages((), (EmbeddedMessage(DECODED, message, version),))


TOPICS_AND_USER_DATA: Final = 2
"""The first fields of a subscription, those of version 0."""


def _group_protocol(scope: Scope, context: DecodingContext) -> object:
    """Return the protocol type of a group (``consumer``, ``connect``, any other), or None if it is not known."""
    return scope("protocol_type") or context.group_protocols.get(str(scope("group_id")))


def _member_metadata(raw: bytes, scope: Scope, context: DecodingContext) -> Candidates:
    protocol = _group_protocol(scope, context)
    if protocol in (None, "consumer"):
        # A response up to JoinGroup v6 does not name the protocol: what has topics and user data, and no byte more, is
        # a consumer's all the same.
        for found in versioned("ConsumerProtocolSubscription", raw, may_end_early=True):
            yield found if protocol else replace(found, least=TOPICS_AND_USER_DATA)
    if protocol in (None, "connect"):
        yield from versioned("ConnectProtocolMetadata", raw, may_end_early=protocol is not None)


def _member_assignment(raw: bytes, scope: Scope, context: DecodingContext) -> Candidates:
    protocol = _group_protocol(scope, context)
    if protocol in (None, "consumer"):
        yield from versioned("ConsumerProtocolAssignment", raw, may_end_early=protocol is not None)
    if protocol in (None, "connect"):
        yield from versioned("ConnectProtocolAssignment", raw, may_end_early=protocol is not None)


def _subscription(raw: bytes, _scope: Scope, _context: DecodingContext) -> Candidates:
    yield from versioned("ConsumerProtocolSubscription", raw, may_end_early=True)


def _connect_assignment(raw: bytes, _scope: Scope, _context: DecodingContext) -> Candidates:
    yield from versioned("ConnectProtocolAssignment", raw, may_end_early=True)


def _assignor_data(raw: bytes, scope: Scope, _context: DecodingContext) -> Candidates:
    """User data of a subscription. The assignor's name is in the same or an enclosing structure."""
    names = {scope(name) for name in ("name", "protocol_name", "protocol_data", "protocol")}
    if "sticky" in names:
        yield exact("StickyAssignorUserData", 1)
        yield exact("StickyAssignorUserData", 0)
    if "cooperative-sticky" in names:
        yield exact("CooperativeStickyAssignorUserData", 0)
    version = int.from_bytes(raw[:4], "big")
    if "stream" in names and 1 <= version <= newest_version("SubscriptionInfoData"):
        yield replace(exact("SubscriptionInfoData", version), may_end_early=True)


def _principal(raw: bytes, _scope: Scope, _context: DecodingContext) -> Candidates:
    yield from versioned("DefaultPrincipalData", raw)


def _request(raw: bytes, _scope: Scope, _context: DecodingContext) -> Candidates:
    """A request with its header, as a broker forwards it to the controller (KIP-590)."""
    key, version = int.from_bytes(raw[:2], "big"), int.from_bytes(raw[2:4], "big")
    known = api(key)
    if known is not None and key != ApiKey.ENVELOPE and known.versions.contains(version):
        header = EmbeddedMessage("header", "RequestHeader", request_header_version(key, version))
        yield EmbeddedMessages((), (header, EmbeddedMessage("body", known.request, version)))


def _response(_raw: bytes, _scope: Scope, context: DecodingContext) -> Candidates:
    """The response to a forwarded request, which is in the request of the envelope."""
    if context.enveloped is None:
        return
    key, version = context.enveloped
    known = api(key)
    if known is not None and key != ApiKey.ENVELOPE and known.versions.contains(version):
        header = EmbeddedMessage("header", "ResponseHeader", response_header_version(key, version))
        yield EmbeddedMessages((), (header, EmbeddedMessage("body", known.response, version)))


def enveloped(request: Mapping[str, object]) -> tuple[int, int] | None:
    """Return API key and version of the request inside an Envelope request."""
    raw = request.get("request_data")
    if not isinstance(raw, bytes) or len(raw) < 4:
        return None
    return int.from_bytes(raw[:2], "big"), int.from_bytes(raw[2:4], "big")


def _telemetry(raw: bytes, scope: Scope, _context: DecodingContext) -> Candidates:
    from dissector.protocol.embedded.telemetry import metrics  # few captures have metrics

    codec = scope("compression_type")
    found = metrics(raw, codec if isinstance(codec, int) else 0)
    if found is not None:
        yield found


def _sasl(raw: bytes, _scope: Scope, context: DecodingContext) -> Candidates:
    found = sasl_token(raw, context.mechanism)
    if found is not None:
        yield found


def _sasl_of_server(raw: bytes, _scope: Scope, context: DecodingContext) -> Candidates:
    """A broker has no words in PLAIN."""
    if context.mechanism != "PLAIN":
        yield from _sasl(raw, _scope, context)


FORMATS: Final[dict[str, dict[str, Format]]] = {
    "JoinGroupRequest": {"protocols.metadata": _member_metadata},
    "JoinGroupResponse": {"members.metadata": _member_metadata},
    "SyncGroupRequest": {"assignments.assignment": _member_assignment},
    "SyncGroupResponse": {"assignment": _member_assignment},
    "DescribeGroupsResponse": {
        "groups.members.member_metadata": _member_metadata,
        "groups.members.member_assignment": _member_assignment,
    },
    "GroupMetadataValue": {"members.subscription": _member_metadata, "members.assignment": _member_assignment},
    "ConsumerGroupMemberMetadataValue": {"classic_member_metadata.supported_protocols.metadata": _subscription},
    "ConsumerProtocolSubscription": {"user_data": _assignor_data},
    "ConnectProtocolMetadata": {"allocation": _connect_assignment},
    "PushTelemetryRequest": {"metrics": _telemetry},
    "SaslAuthenticateRequest": {"auth_bytes": _sasl},
    "SaslAuthenticateResponse": {"auth_bytes": _sasl_of_server},
    "EnvelopeRequest": {"request_data": _request, "request_principal": _principal},
    "EnvelopeResponse": {"response_data": _response},
}
"""By message, then by the field's path in it."""
GROUP_MESSAGES: Final = frozenset(
    ("JoinGroupRequest", "JoinGroupResponse", "SyncGroupRequest", "SyncGroupResponse", "DescribeGroupsResponse")
)
"""Those of which the contents depend on texts alone, and on what is known of all connections."""


def match_format(
    message: str, path: str, raw: bytes, scope: Scope, context: DecodingContext
) -> EmbeddedMessages | Subtree | None:
    """Return the content of a bytes field, None if it is not known. Raises `LimitError` where it exceeds a budget."""
    candidates_of = FORMATS.get(message, {}).get(path)
    candidates = candidates_of(raw, scope, context) if candidates_of is not None and raw else ()
    found = [*candidates]
    whole = next((each for each in found if each.read(raw) is not None), None)
    return whole or next(filter(None, map(partial(_ending_early, raw=raw), found)), None)


def _ending_early(candidate: EmbeddedMessages | Subtree, raw: bytes) -> EmbeddedMessages | None:
    return candidate.ending_early(raw) if isinstance(candidate, EmbeddedMessages) else None

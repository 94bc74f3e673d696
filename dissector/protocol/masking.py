"""Masks a frame's secrets before anything reads it: of a message that is understood, the secret fields; else the whole.

Invariants:
  * in a message that may hold a secret, what is not understood is masked: a message that was cut, is damaged, or has
    bytes behind its last field keeps its header and the fields that surely are what they seem to be
    (`masked_reasons.first_fields`); one with fields that no schema has, or whose layout is a guess, its header alone;
  * on a connection that may have secrets, the same is true of all messages: a wrong size prefix makes the login a part
    of its neighbor. Up to four bytes behind the last field are that neighbor's size, and shown until it is known that
    there is a login. Where a login is not to be expected (`index.secrecy`), the fields before a cut are shown;
  * why a message was not read to its end is never masked (`masked_reasons.reasons_of`): where, what was expected, what
    came, how many bytes there are;
  * a header with an API, a version and a client id is one: no token of a login reads so. PLAIN is (RFC 4616, 2)
    `[authzid] NUL authcid NUL passwd`, texts without controls: where a header has the high byte of its version, 0, is
    a NUL, and where the low one, a character, 0x20 at least; no API has such a version. SCRAM (RFC 5802, 7) and
    OAUTHBEARER (RFC 7628, 3.1) begin with printable characters, and so with an API key above 0x2020. Kerberos begins
    with 0x60, or with the ids of its tokens, 0x0504 and the like (RFC 4121, 4.2; RFC 2743, 3.1): no API keys. For keys
    of others (vendors) the length of the client id decides, too: two characters are one of 2,313 bytes at least. Their
    bodies are masked: such a key may be that of an API with secrets, damaged;
  * masked bytes are not read as fields: `MessageLayout.masked_from` is where they begin.
"""

from dataclasses import replace
from typing import Final, NamedTuple

from dissector.core.finding import Finding, Severity
from dissector.core.text import counted
from dissector.protocol.codec.reader import DECODE_ERRORS, UNKNOWN_TAGS, reader
from dissector.protocol.codec.tracer import Tracer
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.embedded.secrets import (
    MESSAGES_WITH_SECRETS,
    is_clean,
    is_client_id,
    masked,
    may_hold_secrets,
)
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.masked_reasons import TRAILING, UNREAD, first_fields, reasons_of
from dissector.protocol.message import Decoded, Traced, Values, read, read_or_trace, trace, tracer_of_reasons
from dissector.protocol.message_layout import (
    ONLY_HEADER,
    PREFIX,
    REQUEST_ID,
    RESPONSE_ID,
    UNKNOWN_MESSAGE,
    MessageLayout,
    key_and_version,
)
from dissector.protocol.metadata_log import is_of_other_topics, without_secrets
from dissector.protocol.record_masking import masked_frame
from dissector.protocol.records.batch import MASK
from dissector.protocol.records.tracing import OpaqueRecords
from dissector.protocol.schema.loader import api
from dissector.protocol.tree import UNPARSED, Node

NEWER: Final = 100
"""How far a version may be above the known ones; a header with more is none."""
MOST_OF_OTHERS: Final = 32
"""Versions that an unknown API may have: below all printable characters."""
TWO_CHARACTERS: Final = 0x0909
"""Two characters of a text, tabs among them, are no smaller number: no client id is as long."""
CLIENT_ID: Final = REQUEST_ID.stop
"""Where a request has the length of its client id."""


class MaskedFrame(NamedTuple):
    """A frame without its secrets, and how to read it."""

    data: bytes
    layout: MessageLayout
    decoded: Decoded | None = None
    """Its values, if they had to be decoded."""


def is_public(layout: MessageLayout, context: DecodingContext) -> bool:
    """Whether a message has no secrets but in records, whatever its bytes are: its API has none, nor its connection."""
    return not (
        context.may_have_secrets or layout.unread is not None or layout.token or layout.body in MESSAGES_WITH_SECRETS
    )


def needs_search(layout: MessageLayout, context: DecodingContext) -> bool:
    """Whether a message has to be searched for secrets."""
    return layout.body in RECORDS_FIELDS or not is_public(layout, context)


def mask_secrets(data: bytes, size: int, layout: MessageLayout, end: int, context: DecodingContext) -> MaskedFrame:
    """Return a frame with its secrets masked; the frame itself if it has none. It had `size` bytes on the wire, of
    which those before `end` can be read."""
    found = _mask_fields(data, size, layout, end, context)
    if layout.body not in RECORDS_FIELDS or found.layout.masked_from is not None:
        return found
    masked, decoded, reasons = masked_frame(found.data, found.layout, end, found.decoded)
    if masked is None:
        return _masked_whole(data, layout, end, reasons)
    shown = found.layout._replace(findings=(*found.layout.findings, *reasons))
    return MaskedFrame(masked, shown, None if reasons else decoded)


def _mask_fields(data: bytes, size: int, layout: MessageLayout, end: int, context: DecodingContext) -> MaskedFrame:
    """Mask what is secret besides records."""
    is_whole = end == size == len(data)
    if layout.header == "ResponseHeader" and layout.unread == UNKNOWN_MESSAGE and not is_whole:
        # The size of a frame that is not there may be bytes of another message, and so may its correlation id.
        return _masked_whole(data, layout._replace(header=None, token=True), end)
    if layout.unread is not None and _may_be_secret(layout.unread, data, context):
        return _masked_whole(data, layout, end)
    if context.may_cut_secrets and not is_whole and layout.header == "RequestHeader" and _is_cut_header(data, end):
        # Where the size is one of a login's fields, what looks like a client id that is not all there may be the token.
        plain = layout._replace(header=None, body=None, token=False)
        return MaskedFrame(_with_mask(data, CLIENT_ID), _marked(plain, data, CLIENT_ID, layout.findings))
    holds = may_hold_secrets(layout.body, data, context) and not (
        is_of_other_topics(data, layout, end, context, is_whole=is_whole)
    )
    if not layout.token and not holds:
        if context.may_have_secrets:
            return _of_other_api(data, layout, end, context, is_whole=is_whole)
        return MaskedFrame(data, layout)
    decoded = without_secrets(data, layout, context) if is_whole else None
    if decoded is not None:
        return MaskedFrame(data, layout, decoded)
    traced = trace(data, layout, end, context, tracer_type=Tracer if is_whole else tracer_of_reasons(layout))
    codes = {finding.code for finding in traced.findings}
    if not is_whole or codes & UNREAD:
        return _masked_behind_first_fields(data, layout, end, traced)
    if layout.body is not None and not is_clean(traced.tree):
        return _masked_whole(data, layout, end)
    return MaskedFrame(masked(data, traced.tree), layout)


def _may_be_secret(message: str, data: bytes, context: DecodingContext) -> bool:
    return message == UNKNOWN_MESSAGE or may_hold_secrets(message, data, context)


def _of_other_api(
    data: bytes, layout: MessageLayout, end: int, context: DecodingContext, *, is_whole: bool
) -> MaskedFrame:
    """Mask what is not understood of a message whose API has no secrets, on a connection that may have some."""
    if layout.header is None:
        return _masked_whole(data, layout, end)
    decoded, traced = read_or_trace(data, layout, end)
    codes = {finding.code for finding in decoded.findings}
    is_read = not (codes & UNREAD or decoded.rest)
    if not is_sound(decoded.header) or (is_read and context.may_cut_secrets and not is_whole):
        kind = tracer_of_reasons(layout)
        traced = traced or trace(data, layout, end, context, tracer_type=kind, record_tracer=OpaqueRecords)
        return _masked_behind_first_fields(data, layout, end, traced)
    if is_read and (is_whole or end == len(data)):
        return MaskedFrame(data, layout, decoded)
    if not is_whole and end == len(data) and not context.may_cut_secrets and TRAILING not in codes:
        return MaskedFrame(data, layout, decoded)  # with bytes behind its last field its size is damaged
    may_be_surplus = TRAILING in codes and len(decoded.rest) + len(data) - end <= PREFIX
    if traced is None:
        kind = Tracer if may_be_surplus else tracer_of_reasons(layout)
        traced = trace(data, layout, end, context, tracer_type=kind)
    start = min((child.start for child in traced.tree.children if child.type == UNPARSED), default=end)
    is_surplus = may_be_surplus and is_clean(_explained(traced.tree))
    if is_whole and is_surplus and not context.has_secrets:
        return MaskedFrame(data, layout, decoded)
    if (is_whole and not is_surplus) or (not is_whole and context.may_cut_secrets):
        return _masked_behind_first_fields(data, layout, end, traced)
    reasons = reasons_of(traced.findings)
    return MaskedFrame(_with_mask(data, start), _marked(layout, data, start, (*layout.findings, *reasons)))


def _explained(tree: Node) -> Node:
    """A tree without the bytes that no field explains."""
    return replace(tree, children=[child for child in tree.children if child.type != UNPARSED])


def _masked_behind_first_fields(data: bytes, layout: MessageLayout, end: int, traced: Traced) -> MaskedFrame:
    """Mask a message that was not read to its end behind the fields that surely are what they seem to be, and say why
    it was not."""
    reasons = reasons_of(traced.findings)
    body = traced.tree.find("body")
    header_end = _header_end(data, layout, end)
    if layout.body is None or layout.unread is not None or body is None or header_end is None:
        return _masked_whole(data, layout, end, reasons)
    start = first_fields(body, is_request=layout.header == "RequestHeader")
    if start <= header_end or start >= len(data):
        return _masked_whole(data, layout, end, reasons)
    return MaskedFrame(_with_mask(data, start), _marked(layout, data, start, (*layout.findings, *reasons)))


def _masked_whole(data: bytes, layout: MessageLayout, end: int, reasons: tuple[Finding, ...] = ()) -> MaskedFrame:
    """Mask all bytes behind the header; behind the first fields of one that can't be relied on."""
    header_end = _header_end(data, layout, end)
    start = _least_header(data, layout) if header_end is None else header_end
    findings = (*_plain_findings(layout), *reasons)
    if start >= len(data):
        shown = layout._replace(body=None, token=False, findings=_plain_findings(layout))
        is_said = header_end is None or UNREAD & {each.code for each in read(data, shown, end).findings}
        return MaskedFrame(data, shown if is_said else shown._replace(findings=findings))
    plain = layout._replace(body=None, token=False, header=None if header_end is None else layout.header)
    return MaskedFrame(_with_mask(data, start), _marked(plain, data, start, findings))


def _marked(layout: MessageLayout, data: bytes, start: int, findings: tuple[Finding, ...]) -> MessageLayout:
    words = f"masked: {counted(len(data) - start, 'byte')} that may hold a secret; --show-secrets shows them"
    return layout._replace(masked_from=start, findings=(*findings, Finding("masked", Severity.NOTE, words, "(rest)")))


def _with_mask(data: bytes, start: int) -> bytes:
    return data[:start] + MASK * (len(data) - start)


def _plain_findings(layout: MessageLayout) -> tuple[Finding, ...]:
    """The findings of a layout whose body is not shown: a guess is no more than its header."""
    if layout.body is None or layout.unread is None:
        return layout.findings
    return tuple(
        replace(each, message=f"{each.message.partition(': ')[0]}: {ONLY_HEADER}")
        if each.code == "unknown-version"
        else each
        for each in layout.findings
    )


def has_header(data: bytes, layout: MessageLayout, end: int) -> bool:
    """Whether a message begins with a header that can be relied on, or with what is there of one."""
    return _header_end(data, layout, end) is not None


def _header_end(data: bytes, layout: MessageLayout, end: int) -> int | None:
    """Return where the header ends, or what is there of one; None if there is none that can be relied on."""
    if layout.header is None or (layout.header == "RequestHeader" and not is_plausible(data)):
        return None
    try:
        values, at = reader(layout.header, layout.header_version)(data[:end], PREFIX, end)
    except DECODE_ERRORS:
        return end if layout.header == "RequestHeader" and _is_cut_header(data, end) else None
    return at if is_sound(values) else None


def _is_cut_header(request: bytes, end: int) -> bool:
    """Whether bytes end in the client id of a request of a known version, as far as they show."""
    key, version = key_and_version(request)
    known = api(key)
    if known is None or not known.versions.contains(version) or not CLIENT_ID <= end == len(request):
        return False
    length = int.from_bytes(request[CLIENT_ID : CLIENT_ID + 2], "big", signed=True)
    there = request[CLIENT_ID + 2 :]
    if len(request) < CLIENT_ID + 2:
        return True
    return len(there) < length < TWO_CHARACTERS and is_client_id(there.decode("utf-8", "surrogateescape"))


def is_sound(header: Values) -> bool:
    """Whether a header has only what a header may have."""
    client_id = header.get("client_id")
    is_text = not isinstance(client_id, str) or is_client_id(client_id)
    return bool(header) and is_text and UNKNOWN_TAGS not in header


def _least_header(data: bytes, layout: MessageLayout) -> int:
    """Return the end of the fields that a header begins with: of a response its correlation id; of a request API key
    and version too, if they can be true; of what has a size only that."""
    if layout.header is None:
        return PREFIX if layout.token else 0
    if layout.header == "ResponseHeader":
        return RESPONSE_ID.stop
    is_known = api(key_and_version(data)[0]) is not None
    return CLIENT_ID if is_known and is_plausible(data) else PREFIX


def is_plausible(request: bytes) -> bool:
    """Whether a request begins with an API that is known, in a version that it may have one day; or with an API of
    someone else's, in a version that none has passed."""
    key, version = key_and_version(request)
    known = api(key)
    return 0 <= version < MOST_OF_OTHERS if known is None else 0 <= version <= known.versions.high + NEWER

"""What contradicts causes: the vocabulary in which a finding that names one says what must not be true.

A contradiction is a function of how a connection ended. A cause lists its own, and is withheld where one of them is
true (`closed_requests`). They are looked at only where a cause is about to be stated, so they may read bodies.
"""

from collections.abc import Callable
from typing import Final

from dissector.core.times import SECOND
from dissector.findings.framework.connection_end import ConnectionEnd, are_of_login
from dissector.findings.framework.context import FindingContext
from dissector.index.exchange_table import NO_FRAME, RowKind
from dissector.protocol.explain.releases import removal
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api
from dissector.transport.deliveries import STUCK_RETRIES, Delivery

Contradiction = Callable[[ConnectionEnd], bool]
AT_ONCE_NS: Final = 5 * SECOND
"""A broker that refuses a request closes the connection sooner: at once, or after `connection.failed.authentication.
delay.ms`."""
UNREAD_NS: Final = SECOND
"""A broker that lacks the version of a request closes the connection sooner: it queues none of those."""
LARGE: Final = 1 << 20
"""A request from this size on may be refused for its size."""
LARGEST_REQUEST: Final = 100 << 20
"""`socket.request.max.bytes` unless the broker is configured otherwise."""
FIRST_APIS: Final = frozenset((ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA))
"""APIs that all brokers have in version 0, unless a newer release removed it."""
LEAST_NS: Final = SECOND
"""For how long bytes were sent again."""


def closed_by_client(end: ConnectionEnd) -> bool:
    """The client closed the connection first."""
    return end.by_client


def closed_before(end: ConnectionEnd) -> bool:
    """The close came before the request: the broker never read it."""
    return end.closed_ns < end.request_ns


def closed_later(end: ConnectionEnd) -> bool:
    """The close came long after the request: the broker did not refuse it."""
    return end.closed_ns - end.request_ns > AT_ONCE_NS


def was_read(end: ConnectionEnd) -> bool:
    """The close came too late for a request that the broker could not read."""
    return end.closed_ns - end.request_ns > UNREAD_NS


def version_answered(end: ConnectionEnd) -> bool:
    """This version of the API was answered on this connection before."""
    answered = end.answered
    return bool(((answered.api_key == end.key) & (answered.version == end.version)).any())


def unreadable(end: ConnectionEnd) -> bool:
    """The request can't be read, or breaks a rule for which a broker closes the connection."""
    return bool(end.faults)


def cut(end: ConnectionEnd) -> bool:
    """The capture does not have all bytes of the request."""
    return end.captured < end.size


def sent_more(end: ConnectionEnd) -> bool:
    """The client sent another request behind this one: what is missing of it is missing in the capture only."""
    rows = end.rows
    return bool((rows.request_start[rows.request != NO_FRAME] > rows.request_start[end.at]).any())


def too_large(end: ConnectionEnd) -> bool:
    """A request of the connection may have been refused for its size."""
    return bool(end.rows.request_size.max() >= LARGE)


def never_acknowledged(end: ConnectionEnd) -> bool:
    """The broker's TCP never had the request: `unacknowledged` says so."""
    return end.sent is not None and is_stuck(end.sent)


def answered_by_another_id(end: ConnectionEnd) -> bool:
    """The broker answered an id that was not pending, on a connection that is whole: `response-not-pending` says so."""
    rows = end.rows
    is_orphan = (rows.kind == RowKind.EXCHANGE) & (rows.request == NO_FRAME)
    return not end.has_gaps and bool((rows.response_ns[is_orphan] >= end.request_ns).any())


def has_gaps(end: ConnectionEnd) -> bool:
    """The capture lacks the beginning of the connection, or bytes of it."""
    return end.has_gaps


def response_may_be_missing(end: ConnectionEnd) -> bool:
    """Bytes of the broker that came behind the request are missing from the capture: `near-loss` says so."""
    rows = end.rows
    is_gap = (rows.kind == RowKind.GAP) & (rows.response != NO_FRAME)
    return bool((rows.response_ns[is_gap] >= end.request_ns).any())


def other_protocol(end: ConnectionEnd) -> bool:
    """The server responds in another protocol."""
    return end.context.is_server_foreign(end.connection)


def login_begun(end: ConnectionEnd) -> bool:
    """The client began a login on the connection."""
    return end.has_login or bool((end.rows.kind == RowKind.SASL).any())


def login_before(end: ConnectionEnd) -> bool:
    """The client began a login before this request, which may be the beginning of one itself."""
    return bool(are_of_login(end.rows.api_key[: end.at]).any() or (end.rows.kind == RowKind.SASL).any())


def others_answered(end: ConnectionEnd) -> bool:
    """Other APIs than ApiVersions were answered on this connection: none is without a login that needs one."""
    return bool((end.answered.api_key != ApiKey.API_VERSIONS).any())


def beginning_missing(end: ConnectionEnd) -> bool:
    """The capture does not have the connection from its first request on, or something else is between requests."""
    return not end.begins or not end.is_plain


def version_not_offered(end: ConnectionEnd) -> bool:
    """The broker advertised its versions, and not this one."""
    return not end.context.is_offered(end.connection, end.key, end.version)


def versions_known(end: ConnectionEnd) -> bool:
    """The broker advertised its versions."""
    return bool(end.context.offered(end.connection))


def versions_asked(end: ConnectionEnd) -> bool:
    """The client asked the broker for its versions on this connection."""
    return bool((end.rows.api_key[end.rows.is_exchange] == ApiKey.API_VERSIONS).any())


def broker_has_removed_versions(end: ConnectionEnd) -> bool:
    """The broker answered a version that newer releases removed: it is no newer release."""
    answered = end.answered
    return any(
        (known := api(key)) is not None and removal(known.request, version) is not None
        for key, version in {*zip(answered.api_key.tolist(), answered.version.tolist(), strict=True)}
    )


def all_brokers_have_it(end: ConnectionEnd) -> bool:
    """No broker is too old or too new for this version."""
    known = api(end.key)
    return end.key in FIRST_APIS and end.version == 0 and known is not None and removal(known.request, 0) is None


REFUSED: Final = (
    closed_by_client, closed_before, closed_later, version_answered, unreadable, cut, too_large, other_protocol,
    never_acknowledged,
)  # fmt: skip
"""What contradicts every cause by which a broker refuses a request that it read."""


def is_stuck(delivery: Delivery) -> bool:
    """Whether an end sent bytes again and again without an acknowledgement."""
    return (
        delivery.retries >= STUCK_RETRIES
        and delivery.waiting_ns > 0
        and delivery.retry_ns - delivery.waiting_ns >= LEAST_NS
        and not delivery.is_closed
    )


def acknowledged_words(context: FindingContext, connection: int) -> str:
    """What is to be said of requests without a response, if the broker's TCP has all of them; begins with a
    semicolon."""
    sent = context.delivery(connection, of_client=True)
    return "; TCP delivered it, so the broker did not answer" if sent is not None and sent.is_acked else ""

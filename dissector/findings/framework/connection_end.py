"""How a connection ended on which a request has no response: what causes are weighed with.

Made only for connections with such a request, one at a time: its rows are read again, as columns.
"""

from functools import cached_property

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.batches import NEVER
from dissector.core.finding import Finding
from dissector.core.times import MILLISECOND
from dissector.findings.framework.client_advice import ClientAdvice, client_advice
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.index.exchange_table import NO_FRAME, RowKind
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api_name
from dissector.transport.deliveries import Delivery


def are_of_login(keys: Int64) -> Bool:
    """Which API keys are those of a login."""
    found: Bool = (keys == ApiKey.SASL_HANDSHAKE) | (keys == ApiKey.SASL_AUTHENTICATE)
    return found


class ConnectionEnd:
    """A connection that was closed, and the first of its requests without a response: what a cause is stated about."""

    def __init__(self, context: FindingContext, connection: int, row: int, *, fits: bool = False) -> None:
        """`row` is the row of that request; `fits` is true if it surely fits its layout."""
        self.context = context
        self.connection = connection
        self.row = row
        self._fits = fits
        self.closed_ns, self.by_client = context.closed(connection)
        self.rows: ExaminedRows = context.rows_of(connection)
        """All rows of the connection."""
        self.at = int(np.flatnonzero(self.rows.row == row)[0])
        """The place of the request among them."""

    @cached_property
    def key(self) -> int:
        """The API key of the request."""
        return int(self.rows.api_key[self.at])

    @cached_property
    def version(self) -> int:
        """Its version."""
        return int(self.rows.version[self.at])

    @cached_property
    def name(self) -> str:
        """Its API and version, as people say them."""
        return f"{api_name(self.key)} v{self.version}"

    @cached_property
    def request_ns(self) -> int:
        """When it was sent."""
        return int(self.rows.request_ns[self.at])

    @cached_property
    def size(self) -> int:
        """Its bytes on the wire."""
        return int(self.rows.request_size[self.at])

    @cached_property
    def captured(self) -> int:
        """Its bytes in the capture."""
        return self.context.captured(int(self.rows.request[self.at]))

    @cached_property
    def faults(self) -> list[Finding]:
        """What is wrong with the request's own bytes, so that a broker can't read it; none if it was not captured in
        full."""
        return self.context.request_faults(self.row) if not self._fits and self.captured == self.size else []

    @cached_property
    def client_id(self) -> str:
        """The client id of the request; empty for none."""
        return self.context.client_id(self.row)

    @cached_property
    def advice(self) -> ClientAdvice:
        """What to set in this client, in its own words."""
        named = self.context.request(self.row) if self.key == ApiKey.API_VERSIONS else {}
        software = named.get("client_software_name") or self.context.software(self.connection)
        return client_advice(str(software), self.client_id)

    @cached_property
    def session_end_ns(self) -> int:
        """When the login ends that the broker granted before the request; `NEVER` if it said no time (KIP-368)."""
        if not self.has_login:
            return NEVER
        logins = self.answered.where(self.answered.api_key == ApiKey.SASL_AUTHENTICATE)
        if not len(logins.row):
            return NEVER
        lifetime = self.context.response(int(logins.row[-1])).get("session_lifetime_ms")
        if not isinstance(lifetime, int) or lifetime <= 0:
            return NEVER
        return int(logins.response_ns[-1]) + lifetime * MILLISECOND

    @cached_property
    def is_left_out(self) -> bool:
        """Whether a request that was sent after this one has a response."""
        rows = self.rows
        return bool((rows.request_start[rows.has_both] > rows.request_start[self.at]).any())

    @cached_property
    def has_gaps(self) -> bool:
        """Whether the capture lacks the beginning of the connection, or bytes of it."""
        return not self.begins or bool((self.rows.kind == RowKind.GAP).any())

    @cached_property
    def begins(self) -> bool:
        """Whether the capture has the connection from its first request on."""
        return bool(self.rows.request[0] != NO_FRAME and self.rows.request_start[0] == 0)

    @cached_property
    def is_plain(self) -> bool:
        """Whether all rows are exchanges with a request: nothing is missing, and nothing else is between them."""
        rows = self.rows
        return bool((rows.kind == RowKind.EXCHANGE).all() and (rows.request != NO_FRAME).all())

    @cached_property
    def answered(self) -> ExaminedRows:
        """The exchanges with a response that were begun before the request."""
        before = self.rows.where(slice(0, self.at))
        return before.where(before.has_both)

    @cached_property
    def has_login(self) -> bool:
        """Whether the client began a login on the connection."""
        return bool(are_of_login(self.rows.api_key[self.rows.is_exchange]).any())

    @cached_property
    def sent(self) -> Delivery | None:
        """What TCP delivered of the client's bytes; None where that is not known."""
        return self.context.delivery(self.connection, of_client=True)

    @cached_property
    def idle_ns(self) -> int:
        """How long nothing had been said on the connection when it was closed; 0 if nothing was before that."""
        times = np.concatenate([self.rows.request_ns, self.rows.response_ns])
        before = times[(times > 0) & (times <= self.closed_ns)]
        return self.closed_ns - int(before.max()) if len(before) and self.closed_ns != NEVER else 0

    @cached_property
    def lived_ns(self) -> int:
        """From its first request to its close."""
        return max(0, self.closed_ns - int(self.rows.request_ns[0]))

"""A step of the protocol that does not lead on."""

from typing import ClassVar, Final

import numpy as np

from dissector.core.arrays import Bool
from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.recurrence import BoundedStates
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.errors import EXPECTED_ERRORS, error_name
from dissector.protocol.schema.loader import api_name

_EXPECTED_CODES: Final = {code for _, code in EXPECTED_ERRORS}


class RepeatedExpectedError(ConnectionDetector):
    """A step of the protocol that does not lead on."""

    explanation: ClassVar = Explanation(
        "everyday-error-again",
        "Expected error that does not go away",
        Severity.WARNING,
        "MEMBER_ID_REQUIRED for one group, or UNSUPPORTED_VERSION in response to ApiVersions, came again on a "
        "connection without a success in between. Each of them once is a step of the protocol.",
        "The client does not do what the error asks for: it joins without the member id that it was given (KIP-394), "
        "or sends ApiVersions in another version that the broker does not have (KIP-511). Several members of one "
        "group that share a connection look the same.",
        "See what the client sends after the first error: JoinGroup must have the member id of the response, "
        "ApiVersions a version that the response names, or 0. If it does not, upgrade the client.",
    )
    apis: ClassVar = frozenset((ApiKey.API_VERSIONS, ApiKey.JOIN_GROUP))

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._refused: BoundedStates[tuple[int, int, object], list[int]] = BoundedStates(list)
        """By connection, API and group: the error that came last, until a success."""

    def needed(self, rows: ExaminedRows, is_clean: Bool) -> Bool:
        """Without an error, only what follows an error on its connection."""
        refused = [connection for connection, _, _ in self._refused]
        after = np.concatenate([rows.connection[~is_clean], np.array(refused, np.int64)])
        return ~is_clean | np.isin(rows.connection, after)

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """One case a connection and error."""
        group = exchange.request.get("group_id") if exchange.api_key == ApiKey.JOIN_GROUP else None
        key = (exchange.connection, exchange.api_key, group)
        if not exchange.errors:
            self._refused.forget(key)
            return
        code, refused = exchange.errors[0], self._refused.of(key)
        if code in refused:
            words = f"{error_name(code)} again from {api_name(exchange.api_key)}, on the same connection"
            self.report_repeated(key, exchange.row, exchange.response_ns, words, "response.body", "times")
        elif code in _EXPECTED_CODES:
            refused[:] = [code]

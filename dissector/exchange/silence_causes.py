"""`unanswered`, and the findings that say better why a request has no response: on one row only they are said.

`unanswered` is found while a row is decoded, causes by the examination of many rows. Each face that brings the two
together uses this: decoded exchanges, columns of the index, and the tables' current findings.
"""

from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

from dissector.core.finding import Finding

UNANSWERED_CODE: Final = "unanswered"
SILENCE_CAUSES: Final = frozenset(
    (
        "oversized-request", "closed-before-request", "unreadable-request", "closed-at-api-versions",
        "login-required", "version-removed", "suspect-version", "session-expired", "left-out",
        "closed-while-waiting", "wait-cut-short", "closed-in-flight",
        "unacknowledged", "broker-silent", "injected",
    )
)  # fmt: skip
"""Codes of findings of the examination."""
OF_OPEN_CONNECTIONS: Final = frozenset(("unacknowledged", "broker-silent", "injected"))
"""Those of requests on connections that need not have been closed; the others are causes of a close."""


class _Coded(Protocol):
    @property
    def code(self) -> str: ...


OfRow = TypeVar("OfRow", bound=_Coded)


def without_repetition(of_row: Sequence[OfRow], examined: Sequence[Finding]) -> list[OfRow]:
    """Return the findings of a row that those of the examination do not say better."""
    says_why = any(each.code in SILENCE_CAUSES for each in examined)
    return [each for each in of_row if not says_why or each.code != UNANSWERED_CODE]

"""A step of the protocol that does not lead on."""

from typing import ClassVar, Final

from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.decoded_exchange import Seen
from dissector.findings.framework.detector import Around, BodyFinder
from dissector.findings.framework.open_findings import Telling
from dissector.findings.framework.recurrence import Recent
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.errors import EXPECTED_ERRORS, error_name
from dissector.protocol.schema.loader import api_name

_EVERYDAY_CODES: Final = {code for _, code in EXPECTED_ERRORS}


class EverydayErrorAgain(BodyFinder):
    """A step of the protocol that does not lead on."""

    explanation: ClassVar = Explanation(
        "everyday-error-again",
        "An everyday error that does not go away",
        Severity.WARNING,
        "MEMBER_ID_REQUIRED for one group, or UNSUPPORTED_VERSION to ApiVersions, came again on a connection without "
        "a success in between. Once each is a step of the protocol.",
        "The client does not do what the step asks for: it joins without the member id that it was given (KIP-394), or "
        "asks for ApiVersions in another version that the broker has not (KIP-511). Several members of one group that "
        "share a connection look the same.",
        "See what the client sends after the first refusal: JoinGroup must bear the member id of the answer, "
        "ApiVersions a version that the answer names, or 0. Else upgrade the client.",
    )
    apis: ClassVar = frozenset((ApiKey.API_VERSIONS, ApiKey.JOIN_GROUP))

    def __init__(self, found: Telling, around: Around) -> None:
        super().__init__(found, around)
        self._refused: Recent[tuple[int, int, object], list[int]] = Recent(list)
        """By connection, API and group: the error that came last; empty after a success."""

    def look(self, seen: Seen) -> None:
        """One case a connection and error."""
        key = (seen.connection, seen.key, seen.request.get("group_id"))
        refused = self._refused.of(key)
        if not seen.errors:
            refused.clear()
            return
        code = seen.errors[0]
        if code in refused:
            words = f"{error_name(code)} again from {api_name(seen.key)}, on the same connection"
            self.again(key, seen.row, seen.answered_ns, words, "response.body", "times")
        elif code in _EVERYDAY_CODES:
            refused[:] = [code]

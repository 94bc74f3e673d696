"""Clients that repeat ApiVersions in a lower version."""

from typing import ClassVar, NamedTuple

from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.decoded_exchange import Seen
from dissector.findings.framework.detector import Around
from dissector.findings.framework.extractor import ONE, BodyNoter, Maker, Sink
from dissector.findings.framework.recurrence import Recent
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode


class SteppedDown(NamedTuple):
    """A connection asks again, lower."""

    version: int
    refused: int
    time_ns: int


class RefusalNoter(BodyNoter):
    """Versions of ApiVersions that a connection asked in after one was refused, by client."""

    apis: ClassVar = frozenset((ApiKey.API_VERSIONS,))

    def __init__(self, around: Around, sink: Sink) -> None:
        super().__init__(around, sink)
        self._refused: Recent[int, list[int]] = Recent(list)
        """By connection: the version that was refused."""

    def look(self, seen: Seen) -> None:
        """A refusal, and then a lower version."""
        refused = self._refused.of(seen.connection)
        if ErrorCode.UNSUPPORTED_VERSION in seen.errors:
            refused[:] = [seen.version]
        elif refused and seen.version < refused[0]:
            note = SteppedDown(seen.version, refused.pop(), seen.asked_ns)
            self.note((self.around.client(seen.connection),), seen.row, seen.place, note)


class VersionSteppedDown(Maker[SteppedDown]):
    """A client that asks again, lower."""

    noter: ClassVar = RefusalNoter
    explanation: ClassVar = Explanation(
        "version-stepped-down",
        "The client asks again in a lower version",
        Severity.NOTE,
        "ApiVersions was refused with UNSUPPORTED_VERSION, and the client asked again in one that the broker has.",
        "The client is newer than the broker: it begins with the newest version that it knows. This is how KIP-511 "
        "means it; it costs a round trip a connection.",
        "Nothing, if the broker is older on purpose. Else upgrade it. A client that asks high on every connection "
        "could remember what the broker said.",
    )

    def make(self, row: int, note: SteppedDown) -> None:
        """Once a client."""
        words = f"asked again with v{note.version}, as v{note.refused} was refused"
        self.again(ONE, row, note.time_ns, words, "request.header.request_api_version", "connections")

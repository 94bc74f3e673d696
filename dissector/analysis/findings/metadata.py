"""Clients that ask for metadata without end."""

from collections import Counter
from typing import ClassVar, Final

from dissector.analysis.findings.explanation import Explanation
from dissector.analysis.findings.finder import Around, BodyFinder
from dissector.analysis.findings.found import Found
from dissector.analysis.findings.recurring import SECOND, Burst, Recent
from dissector.analysis.findings.seen import Seen
from dissector.analysis.findings.words import tally
from dissector.findings import Severity
from dissector.protocol.schema.errors import error_name
from dissector.text import counted

METADATA: Final = 3
MANY: Final = 30
SPAN_NS: Final = 10 * SECOND


class MetadataStorm(BodyFinder):
    """Many Metadata requests on one connection."""

    explanation: ClassVar = Explanation(
        "metadata-storm",
        "Metadata asked for again and again",
        Severity.WARNING,
        "A client asked for metadata thirty times or more on one connection, with no ten seconds of quiet. The errors "
        "that it got at the time are named: they are why.",
        "A client refreshes its metadata whenever a leader moved, a topic is not there yet, or a connection broke. "
        "Where the answer does not help, it asks again at once. Clients made anew for each message do so, too.",
        "Create topics before they are used, or wait until their leaders are elected; make one client and keep it. "
        "metadata.max.age.ms is the pace when all is well, retry.backoff.ms (topic.metadata.refresh.fast.interval.ms "
        "in librdkafka) when it is not.",
    )
    apis: ClassVar = frozenset((METADATA,))
    any_trouble: ClassVar = True

    def __init__(self, found: Found, around: Around) -> None:
        super().__init__(found, around)
        self._bursts: Recent[int, Burst] = Recent(Burst)
        self._errors: Recent[str, Counter[str]] = Recent(Counter)

    def look(self, seen: Seen) -> None:
        """Errors of any API count as reasons; Metadata counts."""
        client = self.around.client(seen.connection)
        if seen.errors:
            self._errors.of(client).update(error_name(code) for code in dict.fromkeys(seen.errors))
        if seen.key != METADATA:
            return
        burst = self._bursts.of(seen.connection)
        if burst.is_on(seen.asked_ns, MANY, SPAN_NS):
            errors = self._errors.of(client)
            why = f" (errors until then: {tally(errors)})" if errors else ""
            self.burst(
                burst, seen.row, seen.asked_ns, f"{counted(burst.count, 'request')} for metadata{why}", "request"
            )

"""Clients that ask for metadata without end."""

from collections import Counter
from typing import ClassVar, Final, NamedTuple

from dissector.core.finding import Severity
from dissector.core.text import counted
from dissector.findings.explanation import Explanation
from dissector.findings.framework.decoded_exchange import Seen
from dissector.findings.framework.detector import Around
from dissector.findings.framework.extractor import BodyNoter, Maker, Scope, Sink
from dissector.findings.framework.open_findings import Case, Telling
from dissector.findings.framework.recurrence import SECOND, Burst, Recent
from dissector.findings.framework.wording import tally
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.errors import error_name

MANY: Final = 30
SPAN_NS: Final = 10 * SECOND


class Failed(NamedTuple):
    """A response of any API bore errors."""

    errors: tuple[str, ...]


class Asking(NamedTuple):
    """A connection asks for metadata again, and did so many times."""

    connection: int
    """Its first packet."""
    is_new: bool
    """Whether it was not known yet that it does."""
    times: int
    took: str
    """Within what time."""


class MetadataNoter(BodyNoter):
    """Bursts of a connection; the errors of a client."""

    apis: ClassVar = frozenset((ApiKey.METADATA,))
    any_trouble: ClassVar = True

    def __init__(self, around: Around, sink: Sink) -> None:
        super().__init__(around, sink)
        self._bursts: Recent[int, Burst] = Recent(Burst)

    def look(self, seen: Seen) -> None:
        """Errors of any API count as reasons; Metadata counts."""
        scope = (self.around.client(seen.connection),)
        if seen.errors:
            errors = tuple(error_name(code) for code in dict.fromkeys(seen.errors))
            self.note(scope, seen.row, seen.place, Failed(errors))
        if seen.key != ApiKey.METADATA:
            return
        burst = self._bursts.of(seen.connection)
        if burst.is_on(seen.asked_ns, MANY, SPAN_NS):
            connection = self.around.first_packet(seen.connection)
            note = Asking(connection, burst.is_new, burst.count, burst.took(seen.asked_ns))
            self.note(scope, seen.row, seen.place, note)


class MetadataStorm(Maker[Failed | Asking]):
    """Many Metadata requests on one connection."""

    noter: ClassVar = MetadataNoter
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

    def __init__(self, found: Telling, scope: Scope) -> None:
        super().__init__(found, scope)
        self._cases: Recent[int, list[Case]] = Recent(list)
        self._errors: Counter[str] = Counter()

    def make(self, row: int, note: Failed | Asking) -> None:
        """One case a burst, with the errors of all connections of the client."""
        if isinstance(note, Failed):
            self._errors.update(note.errors)
            return
        why = f" (errors until then: {tally(self._errors)})" if self._errors else ""
        words = f"{counted(note.times, 'request')} for metadata{why} within {note.took}"
        case = self._cases.of(note.connection)
        if note.is_new or not case:
            case[:] = [self.tell(row, words, "request")]
        else:
            case[0].retell(words)

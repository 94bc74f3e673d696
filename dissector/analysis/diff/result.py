"""The result of a comparison, as values: entries by cause, pairs of exchanges, timings.

Invariants:
  * swapping the sides swaps `a` and `b` and changes nothing else;
  * texts are as the wire has them: whoever prints them cleans them;
  * row numbers count from 0, as `Capture.exchange` does.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from dissector.analysis.diff.formatting import format_path
from dissector.analysis.diff.message_leaves import LeafPath

if TYPE_CHECKING:
    from dissector.analysis.diff.exchange_pairs import ExchangePairs
    from dissector.analysis.diff.pair_details import PairDecoder

PathText = str
"""A field's path as in the JSON of `show`: ``topics[orders].partitions[0].partition_max_bytes``."""


class DiffReason(StrEnum):
    """Why two sides differ."""

    UNANSWERED = "no response"
    """The connection was closed before the response came."""
    VALUE = "value"
    DEFAULT = "default vs set"
    """One side has exactly the schema's default."""
    VERSION = "version"
    """The API version itself, or a field that the other side's version does not have."""
    ONE_SIDE = "only on one side"
    ORDER = "order"
    COUNT = "count"
    RATE = "rate"
    """The number of requests a second, of recordings that last differently long."""
    TIMING = "timing"
    CONTENT = "record content"
    BATCHING = "batching"
    CODEC = "codec"


class FieldDifference(NamedTuple):
    """A field that differs in a pair of exchanges. A path is None on a side that does not have the field."""

    part: str
    """``request`` or ``response``."""
    path: PathText
    """Without labels, as in the entry for this difference."""
    where_a: LeafPath | None
    """The path in A's message, as `node_lookup.find_node` takes it."""
    where_b: LeafPath | None
    value_a: str
    value_b: str
    reason: DiffReason
    explanation: str
    """Why, where the two values do not show it; ``{a}`` and ``{b}`` stand for the names of the sides."""

    @property
    def path_a(self) -> PathText | None:
        return None if self.where_a is None else format_path(self.where_a)

    @property
    def path_b(self) -> PathText | None:
        return None if self.where_b is None else format_path(self.where_b)


class DifferenceBytes(NamedTuple):
    """The bytes of a field on one side."""

    side: str
    """``A`` or ``B``."""
    row: int
    part: str
    path: PathText
    """With labels; empty for the version in the header."""
    value: str
    start: int
    """In the frame, size prefix included."""
    data: bytes


class ComparedField(NamedTuple):
    """A field of a pair, with its path on either side; None on a side that does not have it."""

    part: str
    where_a: LeafPath | None
    where_b: LeafPath | None
    is_equal: bool
    """Whether both sides have the same values. Unequal values without a `difference` are ignored ones."""
    difference: FieldDifference | None


class PairVerdict(StrEnum):
    """The result for one pair."""

    SAME = "same"
    DIFFERENT = "different"
    ORDER = "different order"
    ONLY_A = "only in A"
    ONLY_B = "only in B"
    MORE = "repetition"
    """One more repetition of a request that both sides repeat: it shows as a count, not as a difference by itself."""


class ExchangePair(NamedTuple):
    """Matching exchanges of A and B, as row numbers. None on a side without one."""

    a: int | None
    b: int | None
    verdict: PairVerdict


@dataclass(frozen=True, slots=True)
class DiffEntry:
    """One cause: the same difference, wherever it was seen."""

    api: str
    """Empty for the sides as a whole."""
    part: str
    """``request``, ``response``, or empty for the exchange as a whole."""
    path: PathText
    """Without labels: ``topics.partitions.partition_max_bytes``; empty for the exchange as a whole."""
    reason: DiffReason
    a: str
    """What A has, as text; empty if it has nothing."""
    b: str
    count_a: int
    """How often A has it: in exchanges, or in array elements for a field that a message has many times."""
    count_b: int
    explanation: str = ""
    """Why, where the two values do not show it; ``{a}`` and ``{b}`` stand for the names of the sides."""
    settings: tuple[tuple[str, str], ...] = ()
    """The settings that control it: the client's family, the setting's name."""
    row_a: int | None = None
    """The first row that shows it."""
    row_b: int | None = None
    subject: str = ""
    """What the requests are for, where an API has several subjects: ``for all topics``."""


class TimingSummary(NamedTuple):
    """The times of the exchanges of one matching key: medians in nanoseconds, A's and B's; None without any."""

    api: str
    subject: str
    """What they are for: a group, all topics; the error in the response."""
    exchanges: tuple[int, int]
    interval_ns: tuple[int | None, int | None]
    """From one request to the next on the same connection."""
    latency_ns: tuple[int | None, int | None]
    retry_backoff_ns: tuple[int | None, int | None]
    """From a response with a retriable error to the retry."""


@dataclass(frozen=True, slots=True)
class SideSummary:
    """One side in brief."""

    label: str
    exchanges: int
    clients: tuple[str, ...]
    """Names and versions of the software from ApiVersions; else the client ids, marked as such."""
    connections: tuple[tuple[str, int], ...]
    """The roles of connections, and how many have each."""
    skipped: tuple[tuple[str, int], ...] = ()
    """Rows that are not compared, by kind: no exchanges, or responses without a request."""


@dataclass(frozen=True)
class DiffResult:
    """Two sides, compared. `ignored` lists what does not count as a difference."""

    a: SideSummary
    b: SideSummary
    entries: tuple[DiffEntry, ...]
    """The most significant first, those of one API together."""
    pairs: "ExchangePairs"
    """In the order of A's rows; B's unmatched rows at their relative position."""
    timings: tuple[TimingSummary, ...]
    ignored: tuple[str, ...]
    _details: "PairDecoder" = field(repr=False)

    @property
    def is_same(self) -> bool:
        return not self.entries

    def differences(self, pair: ExchangePair) -> list[FieldDifference]:
        """Return the fields that differ in one pair: of the entries' differences, those in these two exchanges."""
        return self._details.differences(pair)

    def fields(self, pair: ExchangePair) -> list[ComparedField]:
        """Return all fields of a pair's exchanges, in A's order."""
        return self._details.fields(pair)

    def shows(self, pair: ExchangePair, entry: DiffEntry) -> bool:
        """Return whether a pair shows the difference of an entry."""
        return self._details.shows(pair, entry)

    def field_bytes(self, entry: DiffEntry) -> list[DifferenceBytes]:
        """Return the field of an entry on both sides, in the first pair that shows it; none if no pair does."""
        if not entry.part and entry.path != "version":
            return []
        pairs = self.pairs.with_rows(entry.row_a, entry.row_b)
        first = next((pair for pair in pairs if self._details.shows(pair, entry)), None)
        return [] if first is None else self._details.field_bytes(first, entry)

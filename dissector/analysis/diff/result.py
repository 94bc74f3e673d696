"""What a comparison finds, as values: differences, the entries that group them, pairs of exchanges.

Invariants:
  * swapping the sides swaps what is said of `a` and `b` and changes nothing else;
  * texts are as the wire has them: a face cleans them;
  * row numbers count from 0, as `Capture.exchange` does.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from dissector.analysis.diff.formatting import format_path
from dissector.analysis.diff.message_leaves import LeafPath as Steps

LeafPath = str
"""Where a field is, as the JSON of `show` has it: ``topics[orders].partitions[0].partition_max_bytes``."""


class DiffReason(StrEnum):
    """Why two sides differ."""

    VALUE = "value"
    DEFAULT = "default against set"
    """One side has exactly the schema's default."""
    VERSION = "version"
    """The version itself, or a field that one side's version does not have."""
    ONLY_HERE = "only here"
    ORDER = "order"
    COUNT = "count"
    TIMING = "timing"
    CONTENT = "record content"
    BATCHING = "batching"
    CODEC = "codec"


class FieldDifference(NamedTuple):
    """One field of a pair of exchanges. A path is None where that side has no such field."""

    part: str
    """``request`` or ``response``."""
    path: LeafPath
    """Without labels, as the entry that tells it has it."""
    where_a: Steps | None
    """The field's own path in A's message, as `places.node_of` takes it."""
    where_b: Steps | None
    value_a: str
    value_b: str
    reason: DiffReason
    words: str
    """Why, where the two values do not say it; ``{a}`` and ``{b}`` stand for the names of the sides."""

    @property
    def path_a(self) -> LeafPath | None:
        return None if self.where_a is None else format_path(self.where_a)

    @property
    def path_b(self) -> LeafPath | None:
        return None if self.where_b is None else format_path(self.where_b)


class ComparedField(NamedTuple):
    """One field of a pair, with what is there on either side: in a message's own path; None where it is not there."""

    part: str
    where_a: Steps | None
    where_b: Steps | None
    alike: bool
    """Whether both sides have the same; what differs and is no difference is ignored."""
    difference: FieldDifference | None


class PairVerdict(StrEnum):
    """What a pair is."""

    SAME = "same"
    DIFFERENT = "different"
    ORDER = "other order"
    ONLY_A = "only in A"
    ONLY_B = "only in B"
    MORE = "more of the same"
    """One more turn of a loop that both sides run: told as a count and not as something of its own."""


class ExchangePair(NamedTuple):
    """An exchange of A, one of B, or both that mean the same. None where a side has none."""

    a: int | None
    b: int | None
    verdict: PairVerdict


@dataclass(frozen=True, slots=True)
class DiffEntry:
    """One cause: the same difference wherever it was seen."""

    api: str
    """Empty for what is about the sides as a whole."""
    part: str
    """``request``, ``response``, or empty for the exchange as a whole."""
    path: LeafPath
    """Without labels: ``topics.partitions.partition_max_bytes``; empty for the exchange as a whole."""
    reason: DiffReason
    a: str
    """What A has, in words; empty where it has nothing."""
    b: str
    count_a: int
    """How often A has it: in exchanges, or in what is there many times in one, in elements of an array."""
    count_b: int
    words: str = ""
    """Why, where the two values do not say it; ``{a}`` and ``{b}`` stand for the names of the sides."""
    settings: tuple[tuple[str, str], ...] = ()
    """What controls it: the client's family, the name of its setting."""
    row_a: int | None = None
    """The first row that shows it."""
    row_b: int | None = None


class TimingSummary(NamedTuple):
    """The times of one kind of exchange: medians in nanoseconds, A's and B's; None where a side has none."""

    api: str
    about: str
    """For whom: a group, all topics; the error that it is answered with."""
    exchanges: tuple[int, int]
    interval_ns: tuple[int | None, int | None]
    """From one request to the next on the same connection."""
    latency_ns: tuple[int | None, int | None]
    retry_backoff_ns: tuple[int | None, int | None]
    """From an answer with an error to the next try."""


@dataclass(frozen=True, slots=True)
class SideSummary:
    """One side, in a few words."""

    label: str
    exchanges: int
    clients: tuple[str, ...]
    """Names and versions of the software, as ApiVersions has them; else their client ids, said to be such."""
    connections: tuple[tuple[str, int], ...]
    """What connections are for, and how many are."""
    left_out: tuple[tuple[str, int], ...] = ()
    """Rows that are no exchanges, or whose request is not there, by what they are."""


@dataclass(frozen=True)
class DiffResult:
    """Two sides, compared. `ignored` says what was not taken for a difference, by what it is called."""

    a: SideSummary
    b: SideSummary
    entries: tuple[DiffEntry, ...]
    """The most telling first, those of one API together."""
    pairs: tuple[ExchangePair, ...]
    """In the order of A's rows; what only B has stands where it was said there."""
    timings: tuple[TimingSummary, ...]
    ignored: tuple[str, ...]
    _details: "PairDetails" = field(repr=False)

    @property
    def is_same(self) -> bool:
        return not self.entries

    def differences(self, pair: ExchangePair) -> list[FieldDifference]:
        """What differs in one pair, field by field: of that which the entries tell, what these two exchanges show."""
        return self._details.differences(pair)

    def fields(self, pair: ExchangePair) -> list[ComparedField]:
        """All that both exchanges of a pair have, or its only one, field by field, in A's order."""
        return self._details.fields(pair)

    def shows(self, pair: ExchangePair, entry: DiffEntry) -> bool:
        """Whether a pair is one of those that an entry tells of."""
        return self._details.shows(pair, entry)


class PairDetails(Protocol):
    """Looks at pairs one by one, as they are asked for."""

    def differences(self, pair: ExchangePair) -> list[FieldDifference]: ...

    def fields(self, pair: ExchangePair) -> list[ComparedField]: ...

    def shows(self, pair: ExchangePair, entry: DiffEntry) -> bool: ...


def pairs_with_verdict(pairs: tuple[ExchangePair, ...], verdict: PairVerdict) -> Iterator[ExchangePair]:
    """The pairs of one verdict."""
    return (pair for pair in pairs if pair.verdict is verdict)

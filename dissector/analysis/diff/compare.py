"""Compare two sides: profile them, match their names, compare their matching keys, group the differences by cause."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from dissector.analysis.diff.batch_comparison import (
    SAME_RECORDS,
    compare_batching,
    have_alike_batches,
    is_about_batches,
)
from dissector.analysis.diff.batching import MIN_BATCHES
from dissector.analysis.diff.captured_span import common_of, may_be_equal, may_have_missed, not_compared, sights
from dissector.analysis.diff.client_settings import setting
from dissector.analysis.diff.compared_values import ComparedValue
from dissector.analysis.diff.connection_counts import compare_connections
from dissector.analysis.diff.consequences import fold_consequences, join_entries
from dissector.analysis.diff.field_comparison import MAX_COMPARED_VALUES, NO_VALUES, common_first, compare_fields
from dissector.analysis.diff.formatting import describe_key, format_values
from dissector.analysis.diff.frequency_comparison import MIN_PRODUCE_REQUESTS, compare_frequency, compare_lost
from dissector.analysis.diff.kept_numbers import median_of
from dissector.analysis.diff.key_differences import KeyDifference
from dissector.analysis.diff.key_profile import KeyProfile
from dissector.analysis.diff.leaving import compare_leaving
from dissector.analysis.diff.listed_names import listed_on_one_side
from dissector.analysis.diff.matching_keys import GROUP_PROTOCOLS, NO_TOPICS, MatchingKey
from dissector.analysis.diff.message_leaves import path_without_labels
from dissector.analysis.diff.moved_leaders import is_validation
from dissector.analysis.diff.name_matching import NameMatching
from dissector.analysis.diff.name_uses import NameUses
from dissector.analysis.diff.one_sided import one_sided
from dissector.analysis.diff.pair_details import PairDecoder
from dissector.analysis.diff.pairing import NO_EXCHANGES, pair_exchanges
from dissector.analysis.diff.produce_pace import are_batched_by_waiting
from dissector.analysis.diff.ranking import ordered
from dissector.analysis.diff.rebalances import is_lookup_again, is_of_early_join, is_of_last_rebalance, told_words
from dissector.analysis.diff.result import (
    DiffEntry,
    DiffReason,
    DiffResult,
    PairVerdict,
    SideSummary,
    TimingSummary,
)
from dissector.analysis.diff.side import DiffSide
from dissector.analysis.diff.side_profile import SideProfile
from dissector.analysis.diff.uncompared_records import UncomparedRecords

IGNORED: Final = (
    "correlation ids, client ids, client ports",
    "times; median intervals of repeated requests and of retries count as equal within a factor of 1.5",
    "values of offsets, epochs and sequence numbers; only their presence is compared",
    "generated names (member ids, producer ids, UUIDs, fetch sessions); they are matched by their groups and uses",
    "how many members and fetch sessions there are, and which partitions a member gets; that a leader joins again "
    "before it reads, or a member before it leaves; "
    "which broker leads a partition or coordinates a group, and what a client does to follow a leader that moves; one "
    "connection more that is opened while the client's others are busy, or to ask another broker",
    "responses with retriable errors; of retries after regular pauses these are compared, of others how many there are "
    "(within 3; of lookups of offsets, or if both sides have at least 3, within twice the standard deviation, too)",
    "2 more requests, or 10% more, of an API that clients call repeatedly; at the same rate half as many more, or any "
    "number in a longer recording; after random pauses twice the standard deviation; one more lookup of offsets than 3 "
    "or more",
    "of groups that rebalance on both sides, when offsets are looked up, and how often up to a factor of 2",
    f"fields with more than {MAX_COMPARED_VALUES} values on both sides; the order of array elements",
    "the partitions of records without a key",
    f"how records are batched, below {MIN_BATCHES} batches, and the number of Produce requests, below "
    f"{MIN_PRODUCE_REQUESTS}; from there on, both count as equal within a factor of 1.5, and the number if most "
    "batches are alike; larger batches of a producer that sends when responses come, which take longer",
)
SET: Final = (DiffReason.VALUE, DiffReason.DEFAULT)
ENDS: Final = frozenset(("-2 EARLIEST", "-1 LATEST"))
SAID: Final = frozenset((("JoinGroup", "request", "reason"), ("LeaveGroup", "request", "members.reason")))
"""API, part and path of texts that depend on the program, and on no group that it uses."""
RESET: Final = ("ListOffsets", "topics.partitions.timestamp")
"""API and path of where a consumer begins that finds no committed offset."""
ManualMatches = tuple[tuple[int, int], ...]


def diff(a: DiffSide, b: DiffSide, matches: ManualMatches = (), rows: ManualMatches = ()) -> DiffResult:
    """Compare two sides whose captures have been read to their end.

    `matches` are pairs of connections, numbered as `Row.connection`, that the user matched: their exchanges are
    compared only with each other. So are `rows`, pairs of exchanges of one API that the user matched.
    """
    return compared(*(profiled(side, n, matches, rows) for n, side in enumerate((a, b))))


def profiled(side: DiffSide, number: int, matches: ManualMatches = (), rows: ManualMatches = ()) -> SideProfile:
    """Return the profile of one side, A with the number 0, with what `diff` takes."""
    return SideProfile(
        side,
        {pair[number]: match for match, pair in enumerate(matches, 1)},
        {pair[number]: -match for match, pair in enumerate(rows, 1)},
    )


def compared(a: SideProfile, b: SideProfile) -> DiffResult:
    """Compare two sides that were profiled with the same matches."""
    return _DiffBuilder(a, b).build()


class _DiffBuilder:
    """Builds the result for two profiled sides."""

    def __init__(self, a: SideProfile, b: SideProfile) -> None:
        self._sides = (a, b)
        uses = NameUses(a.keys), NameUses(b.keys)
        self._names = NameMatching(a.names, b.names, uses)
        self._is_one_client = a.labeled_clients == b.labeled_clients
        self._spans = a.span, b.span
        self._sights = sights(*self._spans)
        self._is_partial = any(each.is_partial for each in self._sights)
        if self._is_one_client and not self._is_partial:  # of which lists a part was not captured nobody knows
            self._names.listed = listed_on_one_side(uses, self._names)
        self._keys = [{self._names.key(n, key): profile for key, profile in side.keys.items()} for n, side in
                      enumerate(self._sides)]  # fmt: skip
        self._connections = (a.roles.connections, b.roles.connections)
        self._differences: dict[MatchingKey, list[KeyDifference]] = {}
        self._uncompared = UncomparedRecords(self._sides, self._names)
        self._are_batched_by_waiting: bool | None = None
        """Not yet known."""
        self._missed = set[str](), set[str]()
        """APIs whose requests a side may have missed."""

    def build(self) -> DiffResult:
        a, b = self._keys
        durations = self._sides[0].duration_ns, self._sides[1].duration_ns
        for key in (key for key in a if key in b):  # in A's order, not in a set's
            fields = list(compare_fields(key.api, a[key], b[key], self._names, self._sights))
            frequency = compare_frequency(key, a[key], b[key], durations, is_partial=self._is_partial)
            found = (*fields, *frequency)
            self._differences[key] = [each for each in found if not self._is_chance(key, each)]
        entries = list(self._api_entries())
        if not self._is_partial:  # of connections that were not captured nobody knows
            left_out = [
                [key for key in side.keys if self._names.is_key_left_out(n, key)] for n, side in enumerate(self._sides)
            ]
            entries[:0] = compare_connections(*self._sides, left_out, is_one_client=self._is_one_client)
        pairs, order_entries = pair_exchanges(self._sides, self._keys, self._names, self._sights, self._verdict)
        return DiffResult(
            self._summary(0),
            self._summary(1),
            tuple(self._ordered([*entries, *order_entries])),
            pairs,
            tuple(self._timings()),
            (*IGNORED, *self._names.notes(), *self._uncompared.notes()),
            tuple(not_compared(self._spans, self._missed)),
            PairDecoder(self._sides[0], self._sides[1], self._names, self._differing_fields),
        )

    def _summary(self, side: int) -> SideSummary:
        profile = self._sides[side]
        connections = tuple(sorted(self._connections[side].items()))
        return SideSummary(profile.side.label, profile.exchanges, profile.labeled_clients, connections,
                           tuple(sorted(profile.skipped.items())))  # fmt: skip

    def _api_entries(self) -> Iterator[DiffEntry]:
        """Group by cause: versions, requests of one side only, and the differences of all matching keys."""
        a, b = self._keys
        yield from self._version_entries()
        grouped: dict[tuple[object, ...], DiffEntry] = {}
        by_key = [(key, each) for key, found in self._differences.items() for each in found]
        batches = self._uncompared.batches
        produce = MatchingKey(0, "Produce", (), "")
        batching = compare_batching(batches[0], batches[1], self._names, is_partial=self._is_partial)
        batching = (each for each in batching if not self._is_chance(produce, each))
        lost = [
            (key, each)
            for key in dict.fromkeys((*a, *b))
            for each in compare_lost(key, a.get(key, NO_EXCHANGES), b.get(key, NO_EXCHANGES), self._sights)
        ]
        keys_lost = {key for key, _ in lost}  # whose numbers are those of the attempts
        by_key = [(key, each) for key, each in by_key if each.part or each.path or key not in keys_lost]
        alone = [
            (key, each)
            for key, each in one_sided(*self._without_missed(), self._names)
            if not (self._is_first_to_ask(key, each) or is_validation(key, self._keys))
        ]
        leaving = () if self._is_partial else compare_leaving(*self._sides, self._keys)
        for key, each in (*lost, *leaving, *by_key, *((produce, each) for each in batching), *alone):
            entry = self._entry(key, each)
            texts = entry.a, entry.b
            differs = each.values if each.values and texts == (each.a, each.b) else texts
            cause = (entry.api, entry.part, entry.path, entry.reason, differs, entry.explanation, entry.subject)
            grouped[cause] = join_entries(grouped[cause], entry) if cause in grouped else entry
        yield from grouped.values()

    def _is_first_to_ask(self, key: MatchingKey, found: KeyDifference) -> bool:
        """Return whether one side alone asks once for no topics while both are one client: it does if it has a
        connection before its program names a topic."""
        is_once = (key.api, key.subject) == ("Metadata", NO_TOPICS) and found.count_a + found.count_b == 1
        return is_once and self._is_one_client

    def _is_chance(self, key: MatchingKey, found: KeyDifference) -> bool:
        """Return whether a difference depends on when other members join and leave, or, of one client, on when it knows
        its topics: another client may always join before that; or is about records that say nothing of a client."""
        if key.api == "Produce" and is_about_batches(found) and self._is_batched_by_chance(found):
            return True
        is_early = self._is_one_client and is_of_early_join(key, found, self._keys)
        if is_early or (self._is_one_client and is_of_last_rebalance(key, found, self._keys)):
            return True
        return is_lookup_again(key, found, self._keys) or self._uncompared.has(key, found)

    def _is_batched_by_chance(self, found: KeyDifference) -> bool:
        """Return whether batches are others because responses take longer, or their number because a few are large."""
        is_number = found.reason is DiffReason.COUNT
        if is_number and have_alike_batches(*(side.batches for side in self._sides)):
            return True
        if self._are_batched_by_waiting is None:
            self._are_batched_by_waiting = are_batched_by_waiting(*self._sides)
        return self._are_batched_by_waiting

    def _without_missed(self) -> tuple[Mapping[MatchingKey, KeyProfile], Mapping[MatchingKey, KeyProfile]]:
        """Return the keys of both sides without those of which the other side may have missed the requests."""
        a, b = self._keys
        if not any(each.is_partial or each.is_open for each in self._sights):
            return a, b
        found: list[Mapping[MatchingKey, KeyProfile]] = []
        for n, (mine, other) in enumerate(((a, b), (b, a))):
            common = common_of(mine, other.keys(), self._sides[n].side)
            missed = {
                key
                for key, each in mine.items()
                if key not in other and may_have_missed(key, each, 1 - n, self._spans, self._sides[n], common)
            }
            self._missed[1 - n].update(key.api for key in missed if key.api not in common.apis)
            found.append({key: each for key, each in mine.items() if key not in missed})
        return found[0], found[1]

    def _entry(self, key: MatchingKey, found: KeyDifference) -> DiffEntry:
        path = path_without_labels(found.path)
        if (key.api, found.part, path) in SAID:
            found = self._said_to_all(key, found)
        is_of_key = not (found.part or found.setting)
        is_frequency = found.reason in (DiffReason.COUNT, DiffReason.RATE, DiffReason.TIMING) and is_of_key
        if is_frequency or (found.reason in SET and found.part == "request" and self._varies(key, found)):
            told = told_words(key, self._keys)
            found = found._replace(
                explanation="; ".join(filter(None, (found.explanation, self._uncounted(key), told))),
                subject=self._subject(key),
            )
        place = ".".join(filter(None, (key.api, found.part, path)))
        if found.setting:
            place = found.setting
        if found.explanation.startswith(SAME_RECORDS):
            place += f":{found.reason}"
        if place == "InitProducerId" and key.subject:
            place = "Produce.request.transactional_id"
        known = [setting(place, side.clients) for side in self._sides]
        if place == key.api and not self._may_be_switched(key.api):
            known = []
        if path == "session_id" and not any("no session" in text for text in (found.a, found.b)):
            known = []  # both ask for sessions, so that neither has them switched off
        if (key.api, path) == RESET and not {found.a, found.b} <= ENDS:
            known = []  # one looks up other offsets, which its program wants to know
        settings = tuple(dict.fromkeys(each for each in known if each))
        return DiffEntry(
            key.api, found.part, path, found.reason, found.a, found.b, found.count_a, found.count_b,
            found.explanation, settings, found.row_a, found.row_b, found.subject,
        )  # fmt: skip

    def _said_to_all(self, key: MatchingKey, found: KeyDifference) -> KeyDifference:
        """Return a difference of what programs say, with all that a side says in the requests of a step."""
        said = [
            Counter({self._names.value(n, value): count for value, count in self._values(keys, key, found).items()})
            for n, keys in enumerate(self._keys)
        ]
        body = f"{key.api}{found.part.capitalize()}"
        texts = [
            format_values(body, common_first(mine, other), path_without_labels(found.path))
            for mine, other in (said, said[::-1])
        ]
        return found._replace(a=texts[0], b=texts[1])

    def _may_be_switched(self, api: str) -> bool:
        """Return whether a setting that decides which API a client uses can be why the sides differ: one of them does
        not use it; of the group protocols the other side uses another."""
        used = [side.versions.keys() for side in self._sides]
        if all(api in each for each in used):
            return False
        protocols = {"JoinGroup", *GROUP_PROTOCOLS}
        return api not in protocols or all(each & protocols for each in used)

    def _subject(self, key: MatchingKey) -> str:
        """Describe what distinguishes a key from others of its API."""
        of_api = {each._replace(step="") for keys in self._keys for each in keys if each.api == key.api}
        return describe_key(key if len(of_api) > 1 else key._replace(subject=()))

    def _varies(self, key: MatchingKey, found: KeyDifference) -> bool:
        """Return whether a side's requests of another key have other values of a field: its value is then said of the
        requests of this key alone."""
        for keys in self._keys:
            values = self._values(keys, key, found)
            others = (each for each in keys if each.api == key.api and each != key)
            if any(not self._values(keys, each, found).keys() <= values.keys() for each in others):
                return True
        return False

    @staticmethod
    def _values(
        keys: Mapping[MatchingKey, KeyProfile], key: MatchingKey, found: KeyDifference
    ) -> Counter[ComparedValue]:
        """Return the values of a field in the messages of a key; of what programs say, in those of its step."""
        place = found.part, found.path
        if (key.api, found.part, path_without_labels(found.path)) not in SAID:
            return keys[key].fields.get(place, NO_VALUES) if key in keys else NO_VALUES
        of_step = (each for each in keys if each._replace(subject=key.subject) == key)
        return sum((keys[each].fields.get(place, NO_VALUES) for each in of_step), Counter[ComparedValue]())

    def _uncounted(self, key: MatchingKey) -> str:
        """Name the errors whose exchanges have keys, and so counts, of their own."""
        steps = {each.step for keys in self._keys for each in keys if each._replace(step=key.step) == key}
        others = sorted(steps - {key.step, ""})
        return f"without responses with {', '.join(others)}" if others else ""

    def _timings(self) -> Iterator[TimingSummary]:
        """Yield the times of all keys, whether they differ or not."""
        for key in dict.fromkeys((*self._keys[0], *self._keys[1])):
            a, b = (side.get(key, NO_EXCHANGES) for side in self._keys)
            yield TimingSummary(
                key.api,
                describe_key(key),
                (len(a.rows), len(b.rows)),
                (_median(a.intervals_ns), _median(b.intervals_ns)),
                (_median(a.latencies_ns), _median(b.latencies_ns)),
                (_median(a.retries.backoffs_ns), _median(b.retries.backoffs_ns)),
            )

    def _version_entries(self) -> Iterator[DiffEntry]:
        """Compare the versions of each API that both sides use."""
        used = [side.versions for side in self._sides]
        for api in (api for api in used[0] if api in used[1]):
            a, b = used[0][api], used[1][api]
            if a.keys() != b.keys() and not (self._is_partial and may_be_equal(a, b, self._sights)):
                texts = [", ".join(f"v{version}" for version in sorted(each)) for each in (a, b)]
                first = [min(each.rows[0] for key, each in keys.items() if key.api == api) for keys in self._keys]
                yield DiffEntry(api, "", "version", DiffReason.VERSION, texts[0], texts[1], a.total(), b.total(),
                                row_a=first[0], row_b=first[1])  # fmt: skip

    def _verdict(self, key: MatchingKey) -> PairVerdict:
        """Return the verdict for the pairs of a key."""
        return PairVerdict.DIFFERENT if self._differing_fields(key) else PairVerdict.SAME

    def _differing_fields(self, key: MatchingKey) -> list[KeyDifference]:
        return [each for each in self._differences.get(key, ()) if each.part]

    def _ordered(self, entries: Iterable[DiffEntry]) -> list[DiffEntry]:
        """Fold consequences into their causes, and sort."""
        first: dict[str, int] = {"": -1}
        for keys in self._keys:
            for key, profile in keys.items():
                first[key.api] = min(first.get(key.api, profile.rows[0]), profile.rows[0])
        return ordered(fold_consequences(entries), first)


def _median(times_ns: "array[int]") -> int | None:
    return round(median_of(times_ns)) if times_ns else None

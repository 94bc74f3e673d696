"""Two sides, compared: gathered, their names matched, their keys compared, what is found grouped by its cause."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Final

from dissector.analysis.diff.alignment import align, out_of_order
from dissector.analysis.diff.client_settings import setting
from dissector.analysis.diff.consequences import fold_consequences, join_entries, rank
from dissector.analysis.diff.field_comparison import MAX_COMPARED_VALUES, KeyDifference, compare_fields
from dissector.analysis.diff.formatting import describe_key, format_count
from dissector.analysis.diff.matching_keys import MatchingKey, Workflow
from dissector.analysis.diff.message_leaves import path_without_labels
from dissector.analysis.diff.name_matching import NameMatching
from dissector.analysis.diff.pair_details import PairDecoder
from dissector.analysis.diff.result import (
    DiffEntry,
    DiffReason,
    DiffResult,
    ExchangePair,
    PairVerdict,
    SideSummary,
    TimingSummary,
)
from dissector.analysis.diff.side import DiffSide
from dissector.analysis.diff.side_profile import KeyProfile, SideProfile
from dissector.analysis.diff.statistical_comparison import compare_batching, compare_frequency

IGNORED: Final = (
    "correlation ids, client ids, ports of clients",
    "times; of loops and retries the median interval is compared, up to half more is the same",
    "offsets, epochs and sequence numbers, but whether there is one",
    "member ids, producer ids, uuids, fetch sessions and other names of one run: the first of each side is #1",
    "answers with errors that are tried again, but how often (up to 3 more) and after which pause",
    "two turns of a loop, or a tenth of them, more or less",
    f"fields that have more than {MAX_COMPARED_VALUES} values on both sides; the order of an array's elements",
    "to which partition records without a key go",
    "which records share a batch, and how many requests carry them, where there are less than 20; up to "
    "half more is the same",
)
NO_EXCHANGES: Final = KeyProfile()
ManualMatches = tuple[tuple[int, int], ...]


def diff(a: DiffSide, b: DiffSide, matches: ManualMatches = (), rows: ManualMatches = ()) -> DiffResult:
    """Compare two sides, all of whose captures are read.

    `matches` are connections, as `Row.connection` counts them, that the user says are the same: their exchanges are
    compared with each other alone. So are `rows`, exchanges of one API that the user says mean the same.
    """
    one, other = (
        SideProfile(
            side,
            {pair[n]: number for number, pair in enumerate(matches, 1)},
            {pair[n]: -number for number, pair in enumerate(rows, 1)},
        )
        for n, side in enumerate((a, b))
    )
    return _DiffBuilder(one, other).comparison()


class _DiffBuilder:
    """Two sides, gathered, on their way to a comparison."""

    def __init__(self, a: SideProfile, b: SideProfile) -> None:
        self._sides = (a, b)
        self._names = NameMatching(a.names, b.names)
        self._facts = [{self._names.key(n, key): facts for key, facts in side.facts.items()} for n, side in
                       enumerate(self._sides)]  # fmt: skip
        self._found: dict[MatchingKey, list[KeyDifference]] = {}

    def comparison(self) -> DiffResult:
        a, b = self._facts
        for key in (key for key in a if key in b):  # in A's order, and not in a set's
            fields = list(compare_fields(key.api, a[key], b[key], self._names))
            self._found[key] = [*fields, *compare_frequency(key, a[key], b[key])]
        entries = [*self._whole(), *self._by_api()]
        pairs, disorder = self._pairs()
        return DiffResult(
            self._summary(0),
            self._summary(1),
            tuple(self._ordered([*entries, *disorder])),
            tuple(sorted(pairs, key=self._row_of)),
            tuple(self._timings()),
            (*IGNORED, *(f"{kind} #{n} is {one} in A, {other} in B" for kind, n, one, other in self._names.matched)),
            PairDecoder(self._sides[0], self._sides[1], self._names, self._differing),
        )

    def _summary(self, side: int) -> SideSummary:
        gathered = self._sides[side]
        connections = tuple(sorted(gathered.roles.connections.items()))
        return SideSummary(gathered.side.label, gathered.exchanges, gathered.roles.who, connections,
                           tuple(sorted(gathered.left_out.items())))  # fmt: skip

    def _whole(self) -> Iterator[DiffEntry]:
        """What is about the sides as a whole: connections."""
        roles = [side.roles.connections for side in self._sides]
        if roles[0] != roles[1]:
            told = [", ".join(f"{count} {role}" for role, count in sorted(side.items())) for side in roles]
            counts = [side.total() for side in roles]
            yield DiffEntry("", "", "connections", DiffReason.COUNT, told[0], told[1], counts[0], counts[1])

    def _by_api(self) -> Iterator[DiffEntry]:
        """Versions, what only one side says, and what differs under one key, of all keys together."""
        a, b = self._facts
        yield from self._versions()
        grouped: dict[tuple[object, ...], DiffEntry] = {}
        found = [(key, each) for key in self._found for each in self._found[key]]
        produced = compare_batching(self._sides[0].batching, self._sides[1].batching, self._names)
        produce = MatchingKey(0, "Produce", (), "")
        for key, each in (*found, *((produce, each) for each in produced), *self._alone(a, b)):
            entry = self._entry(key, each)
            cause = (entry.api, entry.part, entry.path, entry.reason, entry.a, entry.b, entry.words)
            grouped[cause] = join_entries(grouped[cause], entry) if cause in grouped else entry
        yield from grouped.values()

    def _entry(self, key: MatchingKey, found: KeyDifference) -> DiffEntry:
        path = path_without_labels(found.path)
        if found.reason is DiffReason.COUNT and not found.words:
            found = found._replace(words=self._not_counted(key))
        place = ".".join(filter(None, (key.api, found.part, path)))
        if found.reason in (DiffReason.BATCHING, DiffReason.CONTENT):
            place += f":{found.reason}"
        known = [setting(place, side.roles.clients) for side in self._sides]
        settings = tuple(dict.fromkeys(each for each in known if each))
        return DiffEntry(
            key.api, found.part, path, found.reason, found.a, found.b, found.count_a, found.count_b,
            found.words, settings, found.row_a, found.row_b,
        )  # fmt: skip

    def _not_counted(self, key: MatchingKey) -> str:
        """What else of the same is there, and counted by itself: what was answered with errors."""
        steps = {each.step for facts in self._facts for each in facts if each._replace(step=key.step) == key}
        others = sorted(steps - {key.step, ""})
        return f"not counting those answered {', '.join(others)}" if others else ""

    def _alone(
        self, a: dict[MatchingKey, KeyProfile], b: dict[MatchingKey, KeyProfile]
    ) -> Iterator[tuple[MatchingKey, KeyDifference]]:
        """What one side alone says."""
        for side, (mine, other) in enumerate(((a, b), (b, a))):
            apis = {key.api for key in other}
            apis |= {api for api, keys in Counter(key.api for key in mine).items() if keys > 1}
            for key, facts in mine.items():
                if key not in other:
                    count, row = len(facts.rows), facts.rows[0]
                    words = describe_key(key) if key.api in apis else ""
                    if side == 0:
                        found = KeyDifference(
                            "", (), DiffReason.ONLY_HERE, format_count(count), "never", count, 0, words, row, None
                        )
                    else:
                        found = KeyDifference(
                            "", (), DiffReason.ONLY_HERE, "never", format_count(count), 0, count, words, None, row
                        )
                    yield key, found

    def _timings(self) -> Iterator[TimingSummary]:
        """The times of all that is said, whether they differ or not."""
        for key in dict.fromkeys((*self._facts[0], *self._facts[1])):
            a, b = (side.get(key, NO_EXCHANGES) for side in self._facts)
            yield TimingSummary(
                key.api,
                describe_key(key),
                (len(a.rows), len(b.rows)),
                (_middle(a.intervals), _middle(b.intervals)),
                (_middle(a.latencies), _middle(b.latencies)),
                (_middle(a.retries.pauses), _middle(b.retries.pauses)),
            )

    def _versions(self) -> Iterator[DiffEntry]:
        """The versions of each API that both sides speak."""
        spoken: list[dict[str, Counter[int]]] = [{}, {}]
        for side, facts in enumerate(self._facts):
            for key, each in facts.items():
                spoken[side].setdefault(key.api, Counter()).update(each.versions)
        for api in (api for api in spoken[0] if api in spoken[1]):
            a, b = spoken[0][api], spoken[1][api]
            if a.keys() != b.keys():
                told = [", ".join(f"v{version}" for version in sorted(each)) for each in (a, b)]
                first = [min(f.rows[0] for key, f in facts.items() if key.api == api) for facts in self._facts]
                yield DiffEntry(api, "", "version", DiffReason.VERSION, told[0], told[1], a.total(), b.total(),
                            row_a=first[0], row_b=first[1])  # fmt: skip

    def _pairs(self) -> tuple[list[ExchangePair], list[DiffEntry]]:
        """All exchanges, each with the one that means the same on the other side."""
        pairs: list[ExchangePair] = []
        disorder: list[DiffEntry] = []
        taken: set[MatchingKey] = set()
        strands = [{self._strand(n, strand): steps for strand, steps in side.strands.items()} for n, side in
                   enumerate(self._sides)]  # fmt: skip
        for strand in dict.fromkeys((*strands[0], *strands[1])):
            steps = [side.get(strand, []) for side in strands]
            keys = [[self._names.key(n, key) for key, _ in each] for n, each in enumerate(steps)]
            taken.update(*keys)
            matched = align(keys[0], keys[1])
            moved = out_of_order(keys[0], keys[1], matched)
            pairs += self._stepwise(steps[0], steps[1], keys, matched, moved)
            if moved:
                disorder.append(_disorder(keys, steps))
        for key in dict.fromkeys((*self._facts[0], *self._facts[1])):
            if key not in taken:
                rows = [side[key].rows if key in side else () for side in self._facts]
                pairs += self._zipped(key, rows[0], rows[1])
        return pairs, disorder

    def _strand(self, side: int, strand: Workflow) -> Workflow:
        return Workflow(*self._names.key(side, MatchingKey(strand.matched, strand.name, strand.subject, ""))[:3])

    def _stepwise(
        self,
        a: list[tuple[MatchingKey, list[int]]],
        b: list[tuple[MatchingKey, list[int]]],
        keys: list[list[MatchingKey]],
        matched: list[tuple[int, int]],
        moved: list[tuple[int, int]],
    ) -> Iterator[ExchangePair]:
        for i, j in matched:
            yield from self._zipped(keys[0][i], a[i][1], b[j][1])
        for i, j in moved:
            yield from (pair if pair.verdict is PairVerdict.MORE else pair._replace(verdict=PairVerdict.ORDER)
                        for pair in self._zipped(keys[0][i], a[i][1], b[j][1]))  # fmt: skip
        there = [{pair[side] for pair in (*matched, *moved)} for side in (0, 1)]
        for n, (_, rows) in enumerate(a):
            yield from () if n in there[0] else (ExchangePair(row, None, PairVerdict.ONLY_A) for row in rows)
        for n, (_, rows) in enumerate(b):
            yield from () if n in there[1] else (ExchangePair(None, row, PairVerdict.ONLY_B) for row in rows)

    def _zipped(self, key: MatchingKey, a: Iterable[int], b: Iterable[int]) -> Iterator[ExchangePair]:
        """The n-th with the n-th; those behind the last of the other side are more of the same."""
        ours, theirs = list(a), list(b)
        verdict = PairVerdict.DIFFERENT if self._differing(key) else PairVerdict.SAME
        both = min(len(ours), len(theirs))
        yield from (ExchangePair(i, j, verdict) for i, j in zip(ours, theirs, strict=False))
        yield from (ExchangePair(row, None, PairVerdict.MORE if both else PairVerdict.ONLY_A) for row in ours[both:])
        yield from (ExchangePair(None, row, PairVerdict.MORE if both else PairVerdict.ONLY_B) for row in theirs[both:])

    def _differing(self, key: MatchingKey) -> list[KeyDifference]:
        """The fields that differ under a key."""
        return [found for found in self._found.get(key, ()) if found.part]

    def _row_of(self, pair: ExchangePair) -> tuple[float, int]:
        """Where a pair stands: by A's row; what only B has, as far down as it stands in B."""
        share = len(self._sides[0].side.capture) / max(1, len(self._sides[1].side.capture))
        return (float(pair.a), 0) if pair.a is not None else ((pair.b or 0) * share, 1)

    def _ordered(self, entries: Iterable[DiffEntry]) -> list[DiffEntry]:
        """The most telling first: the APIs by the most telling of their entries, then in the order in which they are
        first spoken, on whichever side."""
        first: dict[str, int] = {"": -1}
        for facts in self._facts:
            for key, each in facts.items():
                first[key.api] = min(first.get(key.api, each.rows[0]), each.rows[0])
        reasons = list(DiffReason)
        told = fold_consequences(entries)
        best = {entry.api: min(rank(each) for each in told if each.api == entry.api) for entry in told}
        return sorted(told, key=lambda entry: (best[entry.api], first[entry.api], entry.api, rank(entry), entry.part,
                                               entry.path, reasons.index(entry.reason), entry.words))  # fmt: skip


def _middle(times_ns: Sequence[int]) -> int | None:
    return round(median(times_ns)) if times_ns else None


def _disorder(keys: list[list[MatchingKey]], steps: list[list[tuple[MatchingKey, list[int]]]]) -> DiffEntry:
    """Steps of one strand that both sides take, in another order."""
    told = [", ".join(key.api for key in side[:8]) + (", …" if len(side) > 8 else "") for side in keys]
    return DiffEntry(
        keys[0][0].api, "", "", DiffReason.ORDER, told[0], told[1], len(keys[0]), len(keys[1]),
        row_a=steps[0][0][1][0], row_b=steps[1][0][1][0],
    )  # fmt: skip

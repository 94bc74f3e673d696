"""Responses whose request is missing: their API and version, by their bytes and by what their connection is used for.

Invariants:
  * exchanges that have their request are not touched;
  * a verdict does not depend on which rows were decoded before: the evidence of a connection is its requests, and those
    of its first few orphan responses that are certain by themselves;
  * evidence is gathered once for each connection, and again only when more of the capture was read.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.grouping import groups
from dissector.exchange.inference_words import layout_of_candidate
from dissector.index.advertised_versions import AdvertisedVersions
from dissector.index.conversation_state import ConversationState
from dissector.index.exchange_table import NO_FRAME, ExchangeTable, RowKind, RowsByConnection
from dissector.index.frame_table import FrameTable
from dissector.index.version_exchanges import version_ranges
from dissector.protocol.inference.evidence import InferenceEvidence, Odds, Pair
from dissector.protocol.inference.verdict import Confidence, InferenceVerdict, ScoredResponse, infer
from dissector.protocol.message import read
from dissector.protocol.message_layout import RESPONSE_ID
from dissector.protocol.schema.api_keys import ApiKey

MAX_SAMPLES: Final = 8
"""Orphan responses of a connection that may become evidence."""
EVIDENCE_CACHE_SIZE: Final = 16_384
"""Connections whose evidence is kept, some hundred bytes each: on a busy port this many take turns."""
DISTINCT_EVIDENCE: Final = 256
"""Different evidence that is kept, some ten kilobytes each: most connections have the same as others."""
FIRST_ORPHANS: Final = 64
"""Orphan responses of a connection that are inferred among all layouts; the later ones among the layouts of these,
unless none fits and these could be inferred, ..."""
LAST_DOUBT: Final = 512
"""... and they are not later than this one."""
MOST_USUAL: Final = 32
"""Layouts of the first ones among which the later ones are inferred: the most likely."""
MOST_SEEN: Final = 16
"""APIs that the connection uses most, whose layouts are tried as well."""
DIGEST_SIZE: Final = 20
VERDICT_CACHE_SIZE: Final = 16_384
SCORED_BY: Final = 4
"""Fields of `_Response` that are no evidence."""
MOST_SCORED: Final = 16


class _Frame(NamedTuple):
    """A response: its captured bytes, how many come before the first gap, how many were on the wire."""

    data: bytes
    whole: int
    size: int


class _Response(NamedTuple):
    """What a verdict depends on of a response: its bytes without the correlation id, by their hash."""

    digest: bytes
    captured: int
    whole: int
    size: int
    evidence: InferenceEvidence
    narrowed: "_UsualLayouts | None"


@dataclass(frozen=True, eq=False)
class _UsualLayouts:
    """What the first orphan responses of a connection may be: the later ones are mostly of the same layouts."""

    odds: Odds
    is_decided: bool
    """Whether most of the first ones could be inferred."""


class ResponseInference:
    """Infers orphan responses; keeps the evidence of their connections."""

    def __init__(
        self,
        frames: FrameTable,
        table: ExchangeTable,
        by_connection: RowsByConnection,
        conversation_state: ConversationState,
        advertised_versions: AdvertisedVersions,
        is_opened: Callable[[int], bool],
    ) -> None:
        self._frames = frames
        self._table = table
        self._by_connection = by_connection
        self._advertised_versions = advertised_versions
        self._is_opened = is_opened
        """Whether the capture has the beginning of a connection."""
        self._generation = -1
        self._evidence = lru_cache(maxsize=EVIDENCE_CACHE_SIZE)(self._gather)
        self._first_orphans = lru_cache(maxsize=EVIDENCE_CACHE_SIZE)(self._gather_first_orphans)
        self._usual_layouts = lru_cache(maxsize=EVIDENCE_CACHE_SIZE)(self._gather_usual_layouts)
        self._last_doubt = lru_cache(maxsize=EVIDENCE_CACHE_SIZE)(self._find_last_doubt)
        self._same_evidence: dict[object, InferenceEvidence] = {}
        self._same_usual_layouts: dict[object, _UsualLayouts] = {}
        self._verdicts: dict[_Response, InferenceVerdict] = {}
        self._scored: dict[tuple[object, ...], ScoredResponse] = {}
        """The last responses, by all that is no evidence: each is inferred for its connection's, and then with it."""
        self._requests_everywhere = lru_cache(maxsize=1)(self._count_everywhere)
        self._requests_elsewhere: Counter[Pair] = Counter()
        """In other partitions."""
        self._dropped_requests: Counter[Pair] = Counter()
        """Of rows that checkpoints left out; and by connection."""
        self._dropped_by_connection: dict[int, Counter[Pair]] = {}
        self._names = lru_cache(maxsize=1)(conversation_state.known_names)

    def verdict(self, frame: int, connection: int, generation: int, data: bytes, whole: int) -> InferenceVerdict:
        """What an orphan response of a connection is; `data` are the captured bytes of its frame, of which `whole` come
        before the first gap. The conversation state is updated to `generation`."""
        if generation != self._generation:
            self._generation = generation
            for known in (self._same_evidence, self._same_usual_layouts, self._verdicts, self._scored):
                known.clear()
            for cache in (
                self._evidence, self._first_orphans, self._usual_layouts, self._last_doubt, self._requests_everywhere,
                self._names,
            ):  # fmt: skip
                cache.cache_clear()
        response = _Frame(data, whole, int(self._frames.size.values[frame]))
        is_first = bool(self._frames.start.values[frame] == 0) and self._is_opened(connection)
        if is_first or frame in self._first_orphans(connection):
            return self._infer(response, connection, is_first, None)
        narrowed = self._usual_layouts(connection)
        verdict = self._infer(response, connection, is_first, narrowed)
        if verdict.candidates or not narrowed.is_decided or frame > self._last_doubt(connection):
            return verdict
        return self._infer(response, connection, is_first, None)

    def _read(self, frame: int) -> _Frame:
        return _Frame(*self._frames.read(frame), int(self._frames.size.values[frame]))

    def _infer(
        self, response: _Frame, connection: int, is_first: bool, narrowed: "_UsualLayouts | None"
    ) -> InferenceVerdict:
        """Infer a response, among all layouts or a connection's usual ones."""
        return self._verdict(response, self._evidence(connection, is_first), narrowed)

    def _verdict(
        self, response: _Frame, evidence: InferenceEvidence, narrowed: "_UsualLayouts | None"
    ) -> InferenceVerdict:
        """Infer a response. Many have the same bytes, also on different connections."""
        data, whole, size = response
        from hashlib import blake2b  # loads OpenSSL, which captures without lost requests don't need

        digest = blake2b(data[RESPONSE_ID.stop :], digest_size=DIGEST_SIZE).digest()
        key = _Response(digest, len(data), whole, size, evidence, narrowed)
        found = self._verdicts.get(key)
        if found is None:
            scored = self._scored.pop(key[:SCORED_BY], None) or ScoredResponse(data, whole, size, evidence.words)
            if len(self._scored) >= MOST_SCORED:
                del self._scored[next(iter(self._scored))]
            self._scored[key[:SCORED_BY]] = scored
            found = infer(scored, evidence, narrowed.odds if narrowed is not None else None)
            if len(self._verdicts) >= VERDICT_CACHE_SIZE:
                self._verdicts.clear()
            self._verdicts[key] = found
        return found

    def _gather_first_orphans(self, connection: int) -> tuple[int, ...]:
        """Return the first orphan responses of a connection: those that are inferred among all layouts."""
        return tuple(self._orphans(connection)[:FIRST_ORPHANS].tolist())

    def _find_last_doubt(self, connection: int) -> int:
        """Return the last frame that is inferred among all layouts if none of the connection's usual ones fits."""
        return max(self._orphans(connection)[:LAST_DOUBT].tolist(), default=NO_FRAME)

    def _orphans(self, connection: int) -> Int64:
        """Return the frames of a connection's orphan responses, in order."""
        table = self._table
        rows = self._by_connection.rows(connection, self._generation)
        is_orphan = (table.kind.values[rows] == RowKind.EXCHANGE) & (table.request.values[rows] == NO_FRAME)
        found: Int64 = table.response.values[rows[is_orphan]]
        return found

    def _gather_usual_layouts(self, connection: int) -> "_UsualLayouts":
        verdicts = [
            self._infer(self._read(frame), connection, False, None) for frame in self._first_orphans(connection)
        ]
        decided = sum(verdict.confidence in (Confidence.SURE, Confidence.LIKELY) for verdict in verdicts)
        shares: Counter[tuple[int, tuple[int, ...]]] = Counter()
        for verdict in verdicts:
            shares.update({(each.layout.api.key, each.layout.versions): each.share for each in verdict.candidates})
        keys = {key for key, _ in shares.most_common(MOST_USUAL)}
        uses: defaultdict[int, float] = defaultdict(float)
        for (key, _), count in self._evidence(connection, False).seen.items():
            uses[key] += count
        seen = set(sorted(uses, key=lambda key: -uses[key])[:MOST_SEEN])
        odds = tuple(
            (bits, layout)
            for bits, layout in self._evidence(connection, False).odds
            if (layout.api.key, layout.versions) in keys or layout.api.key in seen
        )
        usual = _UsualLayouts(odds, 2 * decided > len(verdicts))
        if len(self._same_usual_layouts) > DISTINCT_EVIDENCE:
            self._same_usual_layouts.clear()
        same = tuple((bits, id(layout)) for bits, layout in odds), usual.is_decided  # layouts live as long as we do
        return self._same_usual_layouts.setdefault(same, usual)

    def requests(self) -> Counter[Pair]:
        """How many requests of this partition have each API key and version."""
        return self._dropped_requests + self._counts(self._rows_with_request(self._table.rows()))

    def merge(self, requests: Counter[Pair]) -> None:
        """Add the requests of the whole capture, those of this partition included."""
        self._requests_elsewhere = requests - self.requests()
        self._generation = -1

    def retain(self, rows: Int64, connections: Int64) -> None:
        """Get ready for a checkpoint that has only these rows, ascending: count the requests of the others, on these
        connections one by one."""
        dropped = self._rows_with_request(np.setdiff1d(self._table.rows(), rows, assume_unique=True))
        self._dropped_requests += self._counts(dropped)
        before = self._dropped_by_connection
        counts = {each: before[each] for each in connections.tolist() if each in before}
        for some in map(dropped.__getitem__, groups(self._table.connection.values[dropped])):
            if (connection := int(self._table.connection.values[some[0]])) in connections:
                counts[connection] = counts.get(connection, Counter()) + self._counts(some)
        self._dropped_by_connection = counts

    def _gather(self, connection: int, is_first: bool) -> InferenceEvidence:
        if is_first:
            return self._shared(replace(self._evidence(connection, False), first=True))
        counts = self._counts(self._rows_with_request(self._by_connection.rows(connection, self._generation)))
        counts += self._dropped_by_connection.get(connection, Counter())
        seen = {pair: float(count) for pair, count in counts.items()}
        versions = self._advertised_versions.of(connection, self._generation)
        evidence = InferenceEvidence(seen, self._requests_everywhere(), versions, self._names())
        return self._shared(self._with_certain_orphans(self._shared(evidence), connection))

    def _shared(self, evidence: InferenceEvidence) -> InferenceEvidence:
        """Return one object for equal evidence of connections, which have the same verdicts then."""
        if len(self._same_evidence) > DISTINCT_EVIDENCE:
            self._same_evidence.clear()
        key = (frozenset(evidence.seen.items()), frozenset(evidence.offered.items()), evidence.first)
        return self._same_evidence.setdefault(key, evidence)

    def _with_certain_orphans(self, evidence: InferenceEvidence, connection: int) -> InferenceEvidence:
        """The evidence, and what orphan responses of the connection add that are certain without each other."""
        seen, versions = Counter(evidence.seen), evidence.offered
        for frame in self._orphans(connection)[:MAX_SAMPLES].tolist():
            response = self._read(frame)
            verdict = self._verdict(response, evidence, None)
            if verdict.confidence is not Confidence.SURE:
                continue
            best = verdict.candidates[0]
            seen[best.layout.api.key, best.version] += 1
            if best.layout.api.key == ApiKey.API_VERSIONS and not versions:
                decoded = read(response.data, layout_of_candidate(best), response.whole)
                versions = dict(version_ranges(decoded.body))
        return replace(evidence, seen=seen, offered=versions)

    def _count_everywhere(self) -> dict[Pair, float]:
        everywhere = self.requests() + self._requests_elsewhere
        return {pair: float(count) for pair, count in everywhere.items()}

    def _rows_with_request(self, rows: Int64) -> Int64:
        """Those of the rows that have a request."""
        table = self._table
        has_request = table.has_request(rows)
        found: Int64 = rows[has_request]
        return found

    def _counts(self, rows: Int64) -> Counter[Pair]:
        """How many of the rows have each API key and version."""
        keys = self._table.api_key.values[rows].astype(np.int64)
        pairs, counts = np.unique(keys << 16 | self._table.version.values[rows], return_counts=True)
        return Counter({
            (pair >> 16, pair & 0xFFFF): count for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True)
        })  # fmt: skip

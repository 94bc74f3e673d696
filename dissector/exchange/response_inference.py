"""Responses whose request the capture lacks: what they are, by their bytes and by what their connection is known for.

Invariants:
  * what is inferred never touches an exchange that has its request;
  * a verdict does not depend on which rows were looked at before: the connection's evidence is its requests, and of its
    lone responses a few that are sure by themselves;
  * evidence is gathered once a connection, again only when more of the capture was read.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.exchange.inference_words import shape_of
from dissector.index.advertised_versions import AdvertisedVersions
from dissector.index.conversation_state import ConversationState, offers
from dissector.index.exchange_table import NO_FRAME, ExchangeTable, RowKind
from dissector.index.frame_table import FrameTable
from dissector.index.rows_by_connection import RowsByConnection
from dissector.protocol.inference.evidence import InferenceEvidence, Pair
from dissector.protocol.inference.verdict import Confidence, InferenceVerdict, infer_response
from dissector.protocol.message import read
from dissector.protocol.schema.api_keys import ApiKey

SAMPLE: Final = 8
"""Lone responses of a connection that are looked at for what it is known for."""
KEPT: Final = 256
"""Connections whose evidence is kept."""
ID_END: Final = 8
"""Where the correlation id of a frame ends."""
SMALL: Final = 512
KEPT_VERDICTS: Final = 4096
"""Verdicts on small responses that are kept."""


class ResponseInference:
    """Judges lone responses; keeps what it gathers of their connections."""

    def __init__(
        self,
        frames: FrameTable,
        table: ExchangeTable,
        by_connection: RowsByConnection,
        knowledge: ConversationState,
        offers: AdvertisedVersions,
        opened: Callable[[int], bool],
    ) -> None:
        self._frames = frames
        self._table = table
        self._by_connection = by_connection
        self._knowledge = knowledge
        self._offers = offers
        self._opened = opened
        """Whether the capture has a connection's beginning."""
        self._generation = -1
        self._evidence = lru_cache(maxsize=KEPT)(self._gather)
        self._alike = lru_cache(maxsize=KEPT_VERDICTS)(self._judge_small)
        self._everywhere = lru_cache(maxsize=1)(self._asked_everywhere)
        self._asked_elsewhere: Counter[Pair] = Counter()
        self._gone: Counter[Pair] = Counter()
        """What rows asked for that are not there any more; and by connection."""
        self._seen_before: dict[int, Counter[Pair]] = {}
        self._words = lru_cache(maxsize=1)(knowledge.words)

    def verdict(self, frame: int, connection: int, generation: int) -> InferenceVerdict:
        """What a lone response of that connection is. The knowledge has learned up to `generation`."""
        if generation != self._generation:
            self._generation = generation
            for cache in (self._evidence, self._alike, self._everywhere, self._words):
                cache.cache_clear()
        first = bool(self._frames.start.values[frame] == 0) and self._opened(connection)
        data, whole = self._frames.read(frame)
        size = int(self._frames.size.values[frame])
        if whole == size <= SMALL:
            return self._alike(data[ID_END:], connection, first)
        return infer_response(data, whole, size, self._evidence(connection, first))

    def _judge_small(self, body: bytes, connection: int, first: bool) -> InferenceVerdict:
        """A small response, whatever its correlation id: there are many of the same bytes."""
        data = bytes(ID_END) + body
        return infer_response(data, len(data), len(data), self._evidence(connection, first))

    def _gather(self, connection: int, first: bool) -> InferenceEvidence:
        if first:
            return replace(self._evidence(connection, False), first=True)
        there = self._counted(self._asked(self._by_connection.rows(connection, self._generation)))
        seen = {pair: float(n) for pair, n in (there + self._seen_before.get(connection, Counter())).items()}
        offered = self._offers.of(connection, self._generation)
        alone = InferenceEvidence(seen, self._everywhere(), offered, self._words())
        return self._with_sure_ones(alone, connection)

    def _with_sure_ones(self, alone: InferenceEvidence, connection: int) -> InferenceEvidence:
        """What a connection's lone responses say that are sure without each other."""
        table = self._table
        rows = self._by_connection.rows(connection, self._generation)
        lone = (table.kind.values[rows] == RowKind.EXCHANGE) & (table.request.values[rows] == NO_FRAME)
        rows = rows[lone][:SAMPLE]
        seen, offered = Counter(alone.seen), alone.offered
        for frame in table.response.values[rows].tolist():
            data, whole = self._frames.read(frame)
            verdict = infer_response(data, whole, int(self._frames.size.values[frame]), alone)
            if verdict.confidence is not Confidence.SURE:
                continue
            best = verdict.candidates[0]
            seen[best.layout.api.key, best.version] += 1
            if best.layout.api.key == ApiKey.API_VERSIONS and not offered:
                offered = dict(offers(read(data, shape_of(best), whole).body))
        return replace(alone, seen=seen, offered=offered)

    def asked(self) -> Counter[Pair]:
        """How often each API and version is asked for, in this part of the capture."""
        return self._gone + self._counted(self._asked())

    def _counted(self, rows: Int64) -> Counter[Pair]:
        return Counter({pair: int(count) for pair, count in self._pairs(rows).items()})

    def keep(self, rows: Int64, connections: Int64) -> None:
        """Only these rows, ascending, will be there from now on: what the others asked for is remembered, on these
        connections one by one."""
        gone = self._asked(np.setdiff1d(self._table.rows(), rows, assume_unique=True))
        self._gone += self._counted(gone)
        seen = {each: self._seen_before[each] for each in connections.tolist() if each in self._seen_before}
        whose = self._table.connection.values[gone]
        order = np.argsort(whose, kind="stable")
        for some in np.split(gone[order], np.flatnonzero(np.diff(whose[order])) + 1):
            if len(some) and (connection := int(self._table.connection.values[some[0]])) in connections:
                seen[connection] = seen.get(connection, Counter()) + self._counted(some)
        self._seen_before = seen

    def take(self, asked: Counter[Pair]) -> None:
        """How often they are asked for in the whole capture, this part of it included."""
        self._asked_elsewhere = asked - self.asked()
        self._generation = -1

    def _asked_everywhere(self) -> dict[Pair, float]:
        everywhere = self.asked() + self._asked_elsewhere
        return {pair: float(count) for pair, count in everywhere.items()}

    def _asked(self, rows: Int64 | None = None) -> Int64:
        """Rows that have a request, of those given or of all."""
        rows = self._table.rows() if rows is None else rows
        asked = (self._table.kind.values[rows] == RowKind.EXCHANGE) & (self._table.request.values[rows] != NO_FRAME)
        found: Int64 = rows[asked]
        return found

    def _pairs(self, rows: Int64) -> dict[Pair, float]:
        """How often those rows have each API and version."""
        keys = self._table.api_key.values[rows].astype(np.int64)
        both, counts = np.unique(keys << 16 | self._table.version.values[rows], return_counts=True)
        return {(pair >> 16, pair & 0xFFFF): float(n) for pair, n in zip(both.tolist(), counts.tolist(), strict=True)}

"""Reads bodies once for all detectors: responses with an error or throttling, and all exchanges of the APIs that a
detector examines, as far as it needs them. The batches of Produce requests and the partitions of Fetch exchanges are
read in columns.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from dissector.bulk.body_columns import BodyColumns
from dissector.core.arrays import Bool, Int64
from dissector.core.batches import NOWHERE
from dissector.core.columns import is_in
from dissector.core.store import Store
from dissector.findings.framework.decoded_exchange import (
    NO_RESPONSE,
    DecodedExchange,
    FramePlace,
    ResponseBody,
    TopicName,
    request_body,
    response_body,
)
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.extractor import Examiner
from dissector.findings.framework.fetched_partitions import FetchedPartitionReader
from dissector.findings.framework.produce_batches import ProduceBatchReader
from dissector.index.exchange_table import NO_FRAME
from dissector.index.indexer import Indexer
from dissector.protocol.codec.program import Part, Program, Wanted
from dissector.protocol.kernel.shredding import Arena
from dissector.protocol.message import Values
from dissector.protocol.message_layout import PREFIX, REQUEST_ID, RESPONSE_ID
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.field_names import ERROR_CODES

THROTTLE_TIME: Final = "throttle_time_ms"


class CleanResponses:
    """Finds the responses without errors and without throttling, which are most of a capture, in columns.

    Invariant: no response that is found has an error or was throttled when it is decoded (a property test)."""

    def __init__(self, bodies: BodyColumns) -> None:
        self._bodies = bodies
        self._arena = Arena()
        self._wanted: dict[int, tuple[Program, Wanted, list[int]]] = {}
        """By the id of a program, with the columns that are to be zero."""

    def __getstate__(self) -> BodyColumns:
        """For a checkpoint: the id of a program is that of this process only."""
        return self._bodies

    def __setstate__(self, bodies: BodyColumns) -> None:
        CleanResponses.__init__(self, bodies)

    def find(self, rows: Int64) -> Bool:
        """Return which rows of the index surely have such a response."""
        found = np.zeros(len(rows), np.bool_)
        for messages in self._bodies.messages(rows, is_request=False, in_columns=True):
            program = messages.program
            known = self._wanted.get(id(program))
            _, wanted, columns = known or self._wanted.setdefault(id(program), _zero_columns(program))
            for part in self._arena.shred(messages.frames, program, wanted, PREFIX):
                is_clean = part.errors == 0
                for number in columns:
                    is_clean[part.column(number).rows] = False
                found[messages.at[part.first : part.stop]] = is_clean
        return found


def _zero_columns(program: Program) -> tuple[Program, Wanted, list[int]]:
    columns = [
        number for number, column in enumerate(program.columns)
        if column.part is Part.VALUE and column.path[0] == "body"
        and (column.name in ERROR_CODES or column.path == ("body", THROTTLE_TIME))
    ]  # fmt: skip
    return program, program.wanted(nonzero=columns), columns


MAX_CACHED_SIZE: Final = 1_024
"""Bytes of a message up to which its body is cached."""
CACHED_BODIES: Final = 1 << 11
"""Many heartbeats, empty fetches and advertised versions have the same bytes after the correlation id."""
Examine = Callable[[DecodedExchange], None]


class BodyReader:
    """Reads exchanges and hands them to examiners."""

    def __init__(self, indexer: Indexer, store: Store, examiners: Sequence[Examiner], topic: TopicName) -> None:
        self._store = store
        self._frames = indexer.frames
        self._examiners = examiners
        self._on_batches = [each for each in examiners if each.examines_batches]
        self._on_fetches = [each for each in examiners if each.examines_fetches]
        self._joined: dict[int, bytes] = {}
        """During a step: the small frames in pieces, joined together."""
        self._by_api: dict[tuple[int, bool], list[Examine]] = {}
        """By API key, and whether the response has an error or was throttled."""
        self._any_error = any(each.any_error for each in examiners)
        """Whether a response with an error is read whatever its API is."""
        apis = frozenset[int]().union(*(each.apis for each in examiners))
        all_of = (each.apis for each in examiners if type(each).needed is Examiner.needed)
        self._apis = np.array(sorted(apis), np.int64)
        self._chosen = np.array(sorted(apis.difference(*all_of)), np.int64)
        """Those of the APIs of which every examiner chooses what it needs."""
        bodies = BodyColumns(indexer, store, show_secrets=True)  # no finding shows values of fields with secrets
        self._clean = CleanResponses(bodies)
        self._batches = ProduceBatchReader(bodies, indexer, topic)
        self._fetched = FetchedPartitionReader(bodies, indexer, topic)
        self._cached_response_body = lru_cache(maxsize=CACHED_BODIES)(response_body)
        self._cached_request_body = lru_cache(maxsize=CACHED_BODIES)(request_body)

    def clean(self, rows: ExaminedRows) -> Bool:
        """Return which of these rows surely have no error and were not throttled."""
        is_clean: Bool = rows.response == NO_FRAME
        is_clean[~is_clean] = self._clean.find(rows.row[~is_clean])
        return is_clean

    def examine(self, rows: ExaminedRows) -> None:
        """Hand the next rows, exchanges with a request, to the examiners of their API."""
        produced = rows.where(rows.api_key == ApiKey.PRODUCE)
        if self._on_batches and len(produced.row):
            batches = self._batches.of(produced)
            for each in self._on_batches:
                each.examine_batches(batches)
        fetches = rows.where(rows.api_key == ApiKey.FETCH)
        if self._on_fetches and len(fetches.row):
            fetched = self._fetched.of(fetches)
            for examiner in self._on_fetches:
                examiner.examine_fetches(fetched)
        is_wanted = is_in(rows.api_key, self._apis)
        if not self._any_error:  # other responses are not even looked at
            rows, is_wanted = rows.where(is_wanted), is_wanted[is_wanted]
        is_clean = rows.response == NO_FRAME
        is_decoded = is_wanted & (rows.api_key != ApiKey.FETCH) & (rows.response_address < 0)
        searched = ~is_clean & ~is_decoded  # what is decoded anyway is not joined twice
        is_clean[searched] = self._clean.find(rows.row[searched])
        is_read = ~is_clean | (is_wanted & ~is_in(rows.api_key, self._chosen))
        for key in self._chosen.tolist():
            at = np.flatnonzero(rows.api_key == key)
            if not len(at):
                continue
            some, clean = rows.where(at), is_clean[at]
            for each in self._examiners:
                if key in each.apis:
                    is_read[at] |= each.needed(some, clean)
        self._examine_read(rows.where(is_read), is_clean[is_read])

    def _examine_read(self, rows: ExaminedRows, is_clean: Bool) -> None:
        """Hand each of these rows to its examiners. Those that are not clean may have errors, or were throttled."""
        columns = (
            is_clean, rows.row, rows.connection, rows.packet, rows.request_start, rows.api_key, rows.version,
            rows.request_ns, rows.response_ns, rows.wait_ns,
        )  # fmt: skip
        requests = (rows.request, rows.request_address, rows.request_size)
        responses = (rows.response, rows.response_address, rows.response_size)
        places = (zip(*(column.tolist() for column in side), strict=True) for side in (requests, responses))
        self._joined = self._join(*(np.concatenate(column) for column in zip(requests, responses, strict=True)))
        read_request, read_response = self._read_request, self._read_response
        for (
            clean,
            row,
            connection,
            packet,
            start,
            key,
            version,
            request_ns,
            response_ns,
            wait_ns,
            request,
            response,
        ) in zip(*(column.tolist() for column in columns), *places, strict=True):
            exchange = DecodedExchange(
                row, connection, packet, start, key, version, request_ns, response_ns, wait_ns, request, response,
                read_request, read_response, has_errors=not clean,
            )  # fmt: skip
            is_bad = not clean and bool(exchange.errors or exchange.response.get(THROTTLE_TIME))
            for examine in self._of_api(key, is_bad=is_bad):
                examine(exchange)
        self._joined = {}

    def _of_api(self, key: int, *, is_bad: bool) -> list[Examine]:
        """Return the examiners of an API, and those of responses that have an error or were throttled."""
        found = self._by_api.get((key, is_bad))
        if found is None:
            found = [each.examine_exchange for each in self._examiners if key in each.apis]
            if is_bad:
                others = [each for each in self._examiners if each.any_error and key not in each.apis]
                found += [each.examine_exchange for each in others]
            self._by_api[key, is_bad] = found
        return found

    def _join(self, frames: Int64, addresses: Int64, sizes: Int64) -> dict[int, bytes]:
        """Return the small frames in pieces that are whole."""
        frames = frames[(addresses < NOWHERE) & (sizes <= MAX_CACHED_SIZE)]
        memory, whole = self._frames.joined(frames)
        data, ends = memory.tobytes(), np.cumsum(whole)
        places = zip(frames.tolist(), (ends - whole).tolist(), ends.tolist(), strict=True)
        return {frame: data[start:end] for frame, start, end in places if end > start}

    def _read(self, place: FramePlace) -> tuple[bytes, int]:
        """Return a frame's bytes, and how many precede the first gap. Most frames are contiguous."""
        frame, address, size = place
        if address >= 0:
            return bytes(self._store.read(address, size)), size
        joined = self._joined.get(frame)
        return self._frames.read(frame) if joined is None else (joined, size)

    def _read_request(self, key: int, version: int, place: FramePlace) -> Values:
        data, contiguous = self._read(place)
        if contiguous == len(data) <= MAX_CACHED_SIZE:
            same = data[: REQUEST_ID.start] + bytes(4) + data[REQUEST_ID.stop :]
            return self._cached_request_body(key, version, same, contiguous)
        return request_body(key, version, data, contiguous)

    def _read_response(self, key: int, version: int, place: FramePlace) -> ResponseBody:
        if place[0] == NO_FRAME:
            return NO_RESPONSE
        data, contiguous = self._read(place)
        if contiguous == len(data) <= MAX_CACHED_SIZE:
            return self._cached_response_body(
                key, version, bytes(RESPONSE_ID.stop) + data[RESPONSE_ID.stop :], contiguous
            )
        return response_body(key, version, data, contiguous)

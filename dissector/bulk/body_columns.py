"""Messages of many rows as frames in memory, by layout, for the native kernel: those that need no careful look.

A message is plain if it is whole, its API and version are known and alone decide its layout, and it is not masked whole
on any connection: its API has no secrets, or only such that are fields of its own and all is clean (`BulkMasking`); it
is no response with records of the metadata log, or surely holds no secret (`PublicResponses`); its client id is text.

Invariant: the frame of a plain message is masked, and one that the kernel reads to its end is read by `ExchangeDecoder`
with the same values (`for_words` takes some more, unmasked). All others are for that decoder: also those whose header
has tagged fields that no schema has, which the kernel does not read.
"""

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.batches import NOWHERE
from dissector.core.columns import Column, unique
from dissector.core.grouping import cuts
from dissector.core.process_memory import trim
from dissector.core.store import Store
from dissector.index.exchange_table import NO_FRAME, RowKind
from dissector.index.indexer import Indexer
from dissector.index.message_headers import SHORT_CLIENT_ID
from dissector.protocol.bulk_envelopes import NO_API, CleanEnvelopes
from dissector.protocol.bulk_masking import BulkMasking, CleanTokens, has_plain_secrets
from dissector.protocol.bulk_metadata_log import PublicResponses
from dissector.protocol.codec.program import Program, message_program
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.embedded.secrets import CARRIERS_BY_NAME, is_unclean, name_metadata_log
from dissector.protocol.kernel.json_messages import join
from dissector.protocol.kernel.shredding import FrameMemory, FramePieces
from dissector.protocol.masking import is_public
from dissector.protocol.message_layout import (
    FALLBACK_SIZE,
    PREFIX,
    RESPONSE_ID,
    MessageLayout,
    request_layout,
    response_layout,
)
from dissector.protocol.metadata_log import is_of_other_topics
from dissector.protocol.records.batch import MASK
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.loader import alternatives, api

READ_TOGETHER: Final = 1 << 22
"""Bytes of frames that are read at once, unless one frame has more."""
NO_ERRORS: Final = np.zeros((0, 2), np.uint8)
VERSION_SIZE: Final = 6
"""Bytes of an API with its versions in such a response."""
_WITH_SECRETS_INSIDE: Final = frozenset((ApiKey.SASL_AUTHENTICATE, ApiKey.ENVELOPE, ApiKey.FETCH_SNAPSHOT))
"""APIs with secrets in bytes or records, Fetch apart: their layouts are no public ones."""
FALLBACK: Final = np.array([0, ErrorCode.UNSUPPORTED_VERSION], np.uint8)
"""The error code of a response in version 0, as bytes."""


class Messages(NamedTuple):
    """Messages of one layout."""

    at: Int64
    """Their places among the rows that were asked for, ascending."""
    api_key: int
    layout: MessageLayout
    program: Program
    frames: FrameMemory


class BodyColumns:
    """Plain messages of one capture."""

    def __init__(self, indexer: Indexer, store: Store, *, show_secrets: bool, for_words: bool = False) -> None:
        """`for_words` takes also messages of which a part is not read, for whoever makes words of numbers and names
        and has the findings from a row that is decoded: ApiVersions responses that surely have the body of version 0,
        whatever the request's version was (KIP-511); messages with a token, records of the metadata log or a forwarded
        message that are no reason to mask more than their secrets. Their frames are not masked."""
        self._indexer = indexer
        self._store = store
        self._for_words = for_words
        self.shows_secrets = show_secrets
        self._masking = None if show_secrets else BulkMasking()
        self._is_plain_client = Column(np.bool_)
        """By the number of a client id, as far as they were looked at."""

    @cached_property
    def _public_responses(self) -> PublicResponses:
        return PublicResponses(with_secrets=self._for_words)  # with large buffers, which few captures need

    @cached_property
    def _clean_envelopes(self) -> CleanEnvelopes:
        return CleanEnvelopes()

    @cached_property
    def _clean_tokens(self) -> CleanTokens:
        return CleanTokens()

    def messages(
        self, rows: Int64, *, is_request: bool, in_columns: bool = False, joins: bool = False
    ) -> Iterator[Messages]:
        """The plain requests of rows, or their plain responses, by layout. `in_columns` takes also responses that may
        have secrets of the metadata log, for whoever reads values into columns and nothing else, but the headers of
        batches, and where secrets are shown all messages that have some; frames may have pieces then, unless it `joins`
        them."""
        first = 0
        for some in self._parts(rows, is_request=is_request):
            for messages in self._messages(some, is_request=is_request, in_columns=in_columns, joins=joins):
                yield messages._replace(at=messages.at + first) if first else messages
            first += len(some)
            trim()

    def layouts(self, *, is_request: bool) -> Iterator[tuple[int, MessageLayout]]:
        """The API keys and layouts of all plain messages of the capture so far; their programs are made."""
        table = self._indexer.table
        keys, versions = (column.values.astype(np.int64) for column in (table.api_key, table.version))
        kinds = (keys << 16 | versions)[(table.kind.values == RowKind.EXCHANGE) & (table.request.values != NO_FRAME)]
        for kind in unique(kinds).tolist():
            layout = _plain_layout(kind >> 16, kind & 0xFFFF, is_request=is_request)
            if layout is not None and layout.header is not None and layout.body is not None:
                message_program(layout.header, layout.header_version, layout.body, layout.body_version)
                yield kind >> 16, layout

    def _parts(self, rows: Int64, *, is_request: bool) -> list[Int64]:
        """Rows in parts, so that frames that are joined, masked or copied from far apart take a bounded memory."""
        table, frames = self._indexer.table, self._indexer.frames
        numbers = (table.request if is_request else table.response).values[rows]
        sizes = np.zeros(len(rows), np.int64)
        there = np.flatnonzero(numbers != NO_FRAME)
        sizes[there] = frames.size.values[numbers[there]]
        large = np.flatnonzero(sizes > READ_TOGETHER)
        sizes[large] = [frames.captured(number) for number in numbers[large].tolist()]  # a size may be damaged
        return np.split(rows, cuts(sizes, READ_TOGETHER))

    def _messages(self, rows: Int64, *, is_request: bool, in_columns: bool, joins: bool) -> Iterator[Messages]:
        table = self._indexer.table
        frames = (table.request if is_request else table.response).values[rows]
        is_exchange = table.has_request(rows)
        there = np.flatnonzero(is_exchange & (frames != NO_FRAME))
        there = there[self.are_plain_clients(table.client_id.values[rows[there]])]
        kinds = table.api_key.values[rows[there]].astype(np.int64) << 16 | table.version.values[rows[there]]
        if not is_request:
            of_versions = np.flatnonzero(kinds >> 16 == ApiKey.API_VERSIONS)
            unclear = of_versions[self._may_fall_back(frames[there[of_versions]])]
            if self._for_words and len(unclear):
                is_sure = self._surely_fall_back(frames[there[unclear]])
                kinds[unclear[is_sure]] = ApiKey.API_VERSIONS << 16
                unclear = unclear[~is_sure]
            there, kinds = np.delete(there, unclear), np.delete(kinds, unclear)
        order = np.argsort(kinds, kind="stable")
        there, kinds = there[order], kinds[order]
        memory = self._memory(frames[there], joins=joins or not in_columns or self._masking is not None)
        whole = np.flatnonzero(memory.addresses)
        there, kinds, memory = there[whole], kinds[whole], memory.at(whole)
        edges = np.flatnonzero(np.diff(kinds, prepend=-1 << 40, append=1 << 40))
        for first, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            key, version = int(kinds[first]) >> 16, int(kinds[first]) & 0xFFFF
            with_secrets = self._for_words or (in_columns and self.shows_secrets)
            layout = _plain_layout(key, version, is_request=is_request, with_secrets=with_secrets)
            if layout is not None and layout.header is not None and layout.body is not None:
                program = message_program(layout.header, layout.header_version, layout.body, layout.body_version)
                of_layout = memory.at(slice(first, stop))
                messages = Messages(there[first:stop], key, layout, program, of_layout)
                if key == ApiKey.FETCH and not is_request and not in_columns:
                    messages = self._public(messages, rows[messages.at])
                elif layout.body in CARRIERS_BY_NAME and not in_columns and self._masking is not None:
                    messages = _of_other_topics(messages)
                elif self._for_words and key in _WITH_SECRETS_INSIDE:
                    at = np.flatnonzero(self._are_clean_inside(messages, rows[messages.at], is_request=is_request))
                    messages = messages._replace(at=messages.at[at], frames=messages.frames.at(at))
                yield self._masked(messages)

    def _are_clean_inside(self, messages: Messages, rows: Int64, *, is_request: bool) -> Bool:
        """Which messages, of rows, are surely not masked as a whole for what their bytes or records hold."""
        frames, program = messages.frames, messages.program
        if messages.api_key == ApiKey.SASL_AUTHENTICATE:
            return self._clean_tokens.of(frames, program)
        if messages.api_key == ApiKey.ENVELOPE and is_request:
            return self._clean_envelopes.requests(frames, program)
        if messages.api_key == ApiKey.ENVELOPE:
            return self._clean_envelopes.responses(frames, program, self._enveloped(rows, messages.layout))
        return np.ones(len(frames), np.bool_) if is_request else self._public_responses.of(frames, program)

    def _enveloped(self, rows: Int64, layout: MessageLayout) -> Int64:
        """The kinds of the requests in the Envelope requests of rows, whose responses have a layout."""
        memory = self._memory(self._indexer.table.request.values[rows], joins=True)
        found = np.full(len(rows), NO_API, np.int64)
        whole = np.flatnonzero(memory.addresses)
        asked = request_layout(ApiKey.ENVELOPE, layout.body_version)
        if asked.header is not None and asked.body is not None:
            program = message_program(asked.header, asked.header_version, asked.body, asked.body_version)
            found[whole] = self._clean_envelopes.kinds(memory.at(whole), program)
        return found

    def _public(self, messages: Messages, rows: Int64) -> Messages:
        """Responses without those that may have a secret of the metadata log: whatever is in one may be of the log that
        its request names."""
        frames = messages.frames
        names_log = name_metadata_log(frames.addresses, frames.sizes)
        unnamed = np.flatnonzero(~names_log)
        names_log[unnamed] = self._requests_name_log(rows[unnamed])
        log = np.flatnonzero(names_log)
        if not len(log):
            return messages
        is_public = ~names_log
        is_public[log] = self._public_responses.of(frames.at(log), messages.program)
        some = np.flatnonzero(is_public)
        return messages._replace(at=messages.at[some], frames=frames.at(some))

    def _masked(self, messages: Messages) -> Messages:
        """Messages with their secrets masked, without those that may be masked whole."""
        if self._masking is None or not has_plain_secrets(messages.layout):
            return messages
        at, frames = self._masking.masked(messages.frames, messages.layout, messages.program)
        return messages._replace(at=messages.at[at], frames=frames)

    def api_keys(self, rows: Int64) -> Int64:
        """The API keys of rows, `(n,)`; -1 where there is no request."""
        return self._indexer.table.api_key.values[rows].astype(np.int64)

    def are_plain_clients(self, client_ids: Int64) -> Bool:
        """Which client ids, given by their numbers, are text that is known as a whole."""
        known, texts = self._is_plain_client, self._indexer.client_ids.texts
        known.extend(np.array([_is_plain_client(text) for text in texts[len(known) :]], np.bool_))
        plain: Bool = known.values[client_ids] != 0
        return plain

    def _may_fall_back(self, frames: Int64) -> Bool:
        """Which ApiVersions responses may have the body of version 0, whatever the request's version was (KIP-511)."""
        address = self._indexer.frames.contiguous(frames)
        may = np.ones(len(frames), np.bool_)
        in_one = address >= 0
        error = self._store.gather(address[in_one], PREFIX + 6)[:, RESPONSE_ID.stop :] if in_one.any() else NO_ERRORS
        may[in_one] = (error == FALLBACK).all(axis=1)
        return may

    def _surely_fall_back(self, frames: Int64) -> Bool:
        """Which of these that may fall back have a body of version 0 from end to end."""
        table = self._indexer.frames
        address, size = table.contiguous(frames), table.size.values[frames]
        at = np.flatnonzero((address >= 0) & (size >= RESPONSE_ID.stop + FALLBACK_SIZE))
        sure = np.zeros(len(frames), np.bool_)
        if len(at):
            counts = self._store.gather(address[at], RESPONSE_ID.stop + FALLBACK_SIZE)[:, -4:].copy().view(">u4")[:, 0]
            sure[at] = size[at] == RESPONSE_ID.stop + FALLBACK_SIZE + VERSION_SIZE * counts.astype(np.int64)
        return sure

    def _requests_name_log(self, rows: Int64) -> Bool:
        """Which rows, of Fetch requests, may name the metadata log: also those whose request is cut."""
        requests = self._indexer.table.request.values[rows]
        memory = self._memory(requests, joins=True)
        found: Bool = memory.addresses == 0
        whole = np.flatnonzero(~found)
        found[whole] = name_metadata_log(memory.addresses[whole], memory.sizes[whole])
        return found

    def _memory(self, frames: Int64, *, joins: bool) -> FrameMemory:
        """Frames in memory, at the address 0 where one is not whole. Frames in pieces are joined, or have room where
        what is read of them comes."""
        table = self._indexer.frames
        size = table.size.values[frames].astype(np.int64)
        pointers, owner = table.pointers(frames)
        in_pieces = np.flatnonzero(table.contiguous(frames) < NOWHERE)
        pieces: FramePieces | None = None
        if len(in_pieces):
            found, whole = table.pieces(frames[in_pieces])
            memory = join(found.addresses, found.sizes) if joins else np.empty(int(whole.sum()), np.uint8)
            starts, there = np.cumsum(whole) - whole, whole > 0
            pointers[in_pieces[there]] = (starts[there] + memory.ctypes.data).astype(np.uint64)
            owner = owner, memory
            if not joins:
                first, stop = np.zeros((2, len(frames)), np.int64)
                first[in_pieces], stop[in_pieces] = found.first, found.stop
                pieces = found._replace(first=first, stop=stop)
        return FrameMemory(pointers, size, owner, pieces)


def _of_other_topics(messages: Messages) -> Messages:
    """Messages without those with a topic that may be the metadata log."""
    frames = messages.frames
    is_other = ~name_metadata_log(frames.addresses, frames.sizes)
    for place in np.flatnonzero(~is_other).tolist():
        data = frames.data(place)
        is_other[place] = is_of_other_topics(data, messages.layout, len(data), EMPTY_CONTEXT, is_whole=True)
    some = np.flatnonzero(is_other)
    return messages if len(some) == len(frames) else messages._replace(at=messages.at[some], frames=frames.at(some))


def _is_plain_client(text: str | None) -> bool:
    """Whether a client id is text, and surely the one of its request: longer ones may be cut."""
    if text is None:
        return True
    return not is_unclean(text) and MASK.decode() not in text and len(text.encode()) <= SHORT_CLIENT_ID


@lru_cache(maxsize=4096)
def _plain_layout(key: int, version: int, *, is_request: bool, with_secrets: bool = False) -> MessageLayout | None:
    """The layout of plain messages; None where API and version do not decide it, or, but `with_secrets`, where it may
    have some in bytes."""
    known = api(key)
    if known is None or not known.versions.contains(version):
        return None
    layout = request_layout(key, version) if is_request else response_layout(key, version, b"")
    if layout.body is None or layout.findings or alternatives(layout.body, version):
        return None
    is_plain = with_secrets or layout.body == "FetchResponse" or is_public(layout, EMPTY_CONTEXT)
    return layout if is_plain or has_plain_secrets(layout) else None

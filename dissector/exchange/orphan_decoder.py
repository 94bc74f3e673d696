"""Decodes responses without their request: as what the user said that they are, or by inference and labeled so."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.columns import tuples
from dissector.core.finding import Finding, Severity
from dissector.exchange import row_findings
from dissector.exchange.decoding_findings import error_response
from dissector.exchange.finding_words import marked
from dissector.exchange.info_column import info
from dissector.exchange.message_decoder import MessageDecoder
from dissector.exchange.metadata_fetches import has_metadata_log
from dissector.exchange.model import UNKNOWN_API, Exchange, ExchangeRow, worst
from dissector.index.advertised_versions import AdvertisedVersions
from dissector.index.exchange_table import NO_FRAME, ExchangeTable, IndexRow, RowKind, RowsByConnection
from dissector.index.frame_table import FrameTable
from dissector.index.indexer import Indexer
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.message import read
from dissector.protocol.schema.loader import api_name

if TYPE_CHECKING:  # imported on use: few captures have a response without its request
    from dissector.exchange.response_inference import ResponseInference

MOST_ASKED: Final = 64
"""Connections whose requests are kept in order: responses of several come in turn."""


class OrphanDecoder:
    """Of one capture."""

    def __init__(
        self,
        indexer: Indexer,
        by_connection: RowsByConnection,
        advertised_versions: AdvertisedVersions,
        is_opened: Callable[[int], bool],
        response_to: tuple[int, int] | None,
    ) -> None:
        self._indexer = indexer
        self._by_connection = by_connection
        self._advertised_versions = advertised_versions
        self._is_opened = is_opened
        """Whether the capture has the beginning of a connection."""
        self._response_to = response_to
        """The API key and version of their requests, as the user gave them."""
        self._asked = lru_cache(maxsize=MOST_ASKED)(self._requests_of)

    @cached_property
    def inference(self) -> "ResponseInference":
        """Which API and version they are of."""
        from dissector.exchange.response_inference import ResponseInference

        indexer = self._indexer
        return ResponseInference(
            indexer.frames, indexer.table, self._by_connection, indexer.conversation_state, self._advertised_versions,
            self._is_opened,
        )  # fmt: skip

    def decode(self, messages: MessageDecoder, index_row: IndexRow, row: ExchangeRow) -> Exchange:
        """A row with the fields that it has besides its message; `messages` are masked or not."""
        from dissector.exchange.inference_words import OrphanFrame, certainty, claimed, layout_of_verdict

        context = self._indexer.conversation_state.context(index_row.connection, index_row.packet)
        if self._response_to is not None:
            return self._of_request(messages, self._response_to, index_row, row, context)
        orphan = self._finding(index_row.connection, index_row.packet, index_row.correlation_id)
        data, whole = self._indexer.frames.read(index_row.response)
        verdict = self.inference.verdict(
            index_row.response, index_row.connection, self._indexer.generation, data, whole
        )
        layout = layout_of_verdict(verdict, OrphanFrame(data, index_row.response_size, whole, context))
        if layout.body == "FetchResponse" and has_metadata_log(read(data, layout, whole).body.get("responses")):
            context = replace(context, fetches_metadata=True)
        response = messages.response(index_row, layout, context)
        exchange = Exchange(row, None, None, response, [orphan])
        row = row._replace(api=UNKNOWN_API, info=orphan.message, **_of_response(index_row))
        best = claimed(verdict)
        if best is not None:
            exchange.row_findings.extend(error_response(best.layout.api.key, response))
            words = info(None, response, exchange.row_findings, context.topic_names)
            words = ": ".join(filter(None, (f"by inference, {certainty(verdict)}", words)))
            words = words if orphan.code == "orphan" else f"{marked('', [orphan])} {orphan.message} · {words}"
            row = row._replace(api=f"{best.layout.api.name}?", version=best.version, info=words)
        exchange.row = row._replace(severity=worst(exchange.findings))
        return exchange

    def answer_none(self, rows: Int64) -> Bool:
        """Which rows of the index, all of them responses without a request, answer none: the capture would have it."""
        found = np.zeros(len(rows), np.bool_)
        if self._response_to is None:
            table = self._indexer.table
            order = np.argsort(table.connection.values[rows], kind="stable")
            columns = (column.values[rows[order]] for column in (table.connection, table.packet, table.correlation_id))
            found[order] = [self._finding(*each) is not row_findings.ORPHAN for each in tuples(*columns)]
        return found

    def _finding(self, connection: int, packet: int, correlation_id: int) -> Finding:
        """Why a response has no request: the capture does not have it, or, if nothing is missing of the connection, it
        answers none."""
        if not self._is_opened(connection):
            return row_findings.ORPHAN
        return self._asked(connection, self._indexer.generation).finding(packet, correlation_id)

    def _requests_of(self, connection: int, generation: int) -> "_OwnRequests":
        rows = self._by_connection.rows(connection, generation)
        return _OwnRequests(self._indexer.table, self._indexer.frames, rows)

    def _of_request(
        self, messages: MessageDecoder, kind: tuple[int, int], index_row: IndexRow, row: ExchangeRow,
        context: DecodingContext,
    ) -> Exchange:  # fmt: skip
        """A response to a request whose API and version the user named."""
        key, version = kind
        layout = messages.response_layout(key, version, index_row.response)
        response = messages.response(index_row, layout, context)
        label = Finding("orphan", Severity.NOTE, f"read as a response to {api_name(key)} v{version}", "response")
        exchange = Exchange(row, key, None, response, [label, *error_response(key, response)])
        exchange.row = row._replace(
            api=api_name(key), version=version, **_of_response(index_row),
            info=info(None, response, exchange.row_findings, context.topic_names), severity=worst(exchange.findings),
        )  # fmt: skip
        return exchange


class _OwnRequests:
    """The rows of a connection that has its beginning in the capture, in the order of their packets: what each place
    says of all before it is found once, as a connection may have a million responses without a request."""

    def __init__(self, table: ExchangeTable, frames: FrameTable, rows: Int64) -> None:
        packets = table.packet.values[rows]
        order = np.argsort(packets, kind="stable")
        rows, self._packets = rows[order], packets[order]
        requests = table.request.values[rows]
        is_asked = requests != NO_FRAME
        is_odd = table.kind.values[rows] != RowKind.EXCHANGE
        is_odd[is_asked] |= frames.is_cut.values[requests[is_asked]]
        begins = is_asked.copy()
        begins[is_asked] = frames.start.values[requests[is_asked]] == 0
        self._is_whole = np.logical_or.accumulate(begins) & ~np.logical_or.accumulate(is_odd)
        """Whether all rows up to here are exchanges, their requests the first ones of the connection and not cut."""
        ids = table.correlation_id.values[rows]
        self._first_of = _firsts(ids, np.flatnonzero(is_asked))
        waiting = _firsts(ids, np.flatnonzero(is_asked & (table.response.values[rows] == NO_FRAME)))
        self._waiting = list(waiting)
        self._waiting_at = np.array(list(waiting.values()), np.int64)

    def finding(self, packet: int, number: int) -> Finding:
        """The finding of a response with a correlation id of this number."""
        end = int(np.searchsorted(self._packets, packet, side="right"))
        if not self._is_whole[end - 1]:
            return row_findings.ORPHAN
        count = int(np.searchsorted(self._waiting_at, end))
        pending = [each for each in self._waiting[: min(count, row_findings.MOST_SHOWN + 2)] if each != number]
        is_answered = self._first_of.get(number, end) < end
        if not pending and not is_answered:
            return row_findings.ORPHAN_OF_WHOLE
        return row_findings.not_pending(number, pending, is_answered=is_answered)


def _firsts(ids: Int64, places: Int64) -> dict[int, int]:
    """Return the first of these places of each id, ascending."""
    _, first = np.unique(ids[places], return_index=True)
    some = places[np.sort(first)]
    return dict(zip(ids[some].tolist(), some.tolist(), strict=True))


def _of_response(index_row: IndexRow) -> dict[str, Any]:
    """The fields of a row that its response has."""
    return {
        "response_size": index_row.response_size, "response_transfer_ns": index_row.response_transfer_ns,
        "response_packet": index_row.packet + 1,
    }  # fmt: skip

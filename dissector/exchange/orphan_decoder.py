"""Decodes responses without their request: as what the user said that they are, or by inference and labeled so."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dissector.core.finding import Finding, Severity
from dissector.exchange import row_findings
from dissector.exchange.decoding_findings import error_response
from dissector.exchange.finding_words import marked
from dissector.exchange.info_column import info
from dissector.exchange.message_decoder import MessageDecoder
from dissector.exchange.metadata_fetches import has_metadata_log
from dissector.exchange.model import UNKNOWN_API, Exchange, ExchangeRow, worst
from dissector.index.advertised_versions import AdvertisedVersions
from dissector.index.exchange_table import NO_FRAME, IndexRow, RowKind, RowsByConnection
from dissector.index.indexer import Indexer
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.message import read
from dissector.protocol.schema.loader import api_name

if TYPE_CHECKING:  # imported on use: few captures have a response without its request
    from dissector.exchange.response_inference import ResponseInference


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
        orphan = self._finding(index_row)
        verdict = self.inference.verdict(index_row.response, index_row.connection, self._indexer.generation)
        data, whole = self._indexer.frames.read(index_row.response)
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

    def _finding(self, index_row: IndexRow) -> Finding:
        """Why it has no request: the capture does not have it, or, if nothing is missing of the connection, it answers
        none."""
        table, frames, connection = self._indexer.table, self._indexer.frames, index_row.connection
        rows = self._by_connection.rows(connection, self._indexer.generation)
        rows = rows[table.packet.values[rows] <= index_row.packet]
        asked = rows[table.request.values[rows] != NO_FRAME]
        if not self._is_opened(connection) or (table.kind.values[rows] != RowKind.EXCHANGE).any() or not len(asked):
            return row_findings.ORPHAN
        requests = table.request.values[asked]
        is_whole = frames.start.values[requests].min() == 0 and not frames.is_cut.values[requests].any()
        if not is_whole:
            return row_findings.ORPHAN
        ids, responses = table.correlation_id.values[asked], table.response.values[asked]
        number = index_row.correlation_id
        pending, is_answered = ids[(responses == NO_FRAME) & (ids != number)], bool((ids == number).any())
        if not len(pending) and not is_answered:
            return row_findings.ORPHAN_OF_WHOLE
        return row_findings.not_pending(number, pending.tolist(), is_answered=is_answered)

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


def _of_response(index_row: IndexRow) -> dict[str, Any]:
    """The fields of a row that its response has."""
    return {
        "response_size": index_row.response_size, "response_transfer_ns": index_row.response_transfer_ns,
        "response_packet": index_row.packet + 1,
    }  # fmt: skip

"""Decodes rows that are no exchange: raw SASL tokens, gaps and bytes without frames, connections that are not Kafka."""

from collections.abc import Callable
from dataclasses import replace

from dissector.detection.connections import Connections
from dissector.detection.other_protocols import OtherProtocol
from dissector.exchange import row_findings
from dissector.exchange.connection_facts import EndpointNames
from dissector.exchange.message_decoder import MessageDecoder
from dissector.exchange.model import Exchange, ExchangeRow, worst
from dissector.index.exchange_table import NO_FRAME, IndexRow, RowKind
from dissector.index.indexer import Indexer
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.message_layout import SASL_TOKEN, UNFRAMED
from dissector.tls.session import TlsSession


class OtherRowDecoder:
    """Of one capture. A row comes with the fields that it has besides its messages; `messages` are masked or not."""

    def __init__(
        self,
        indexer: Indexer,
        connections: Connections,
        endpoints: EndpointNames,
        ignored_bytes: Callable[[int], int],
        tls_session: Callable[[int], TlsSession | None],
    ) -> None:
        self._indexer = indexer
        self._connections = connections
        self._endpoints = endpoints
        self._ignored_bytes = ignored_bytes
        """Of each direction that is not Kafka."""
        self._tls_session = tls_session

    def sasl_token(self, messages: MessageDecoder, index_row: IndexRow, row: ExchangeRow) -> Exchange:
        """A raw SASL token of one side."""
        context = self._context(index_row)
        request = response = None
        if index_row.request != NO_FRAME:
            request = messages.request(index_row, SASL_TOKEN, context)
        if index_row.response != NO_FRAME:
            of_server = replace(context, mechanism=None) if context.mechanism == "PLAIN" else context
            response = messages.response(index_row, SASL_TOKEN, of_server)
        side = "client" if request is not None else "server"
        row = row._replace(
            api="SASL token",
            request_size=request.size if request is not None else None,
            response_size=response.size if response is not None else None,
            info=" ".join(filter(None, (context.mechanism, f"token of the {side}, without a header"))),
        )
        exchange = Exchange(row, None, request, response)
        exchange.row = row._replace(severity=worst(exchange.findings))
        return exchange

    def between_frames(
        self, messages: MessageDecoder, index_row: IndexRow, row: ExchangeRow, kind: RowKind
    ) -> Exchange:
        """A gap, or bytes without frames."""
        of_client = index_row.request != NO_FRAME
        size = index_row.request_size if of_client else index_row.response_size
        finding = row_findings.between_frames(kind, size, self._tls_session(index_row.connection))
        other = self._indexer.detector.server_protocol(index_row.connection)
        if other is not None and kind is RowKind.UNPARSED and not of_client:
            finding = row_findings.other_server(other, self._indexer.detector.alert(index_row.connection)[0])
        row = row._replace(info=finding.message, severity=finding.severity)
        request = response = None
        if kind is RowKind.UNPARSED and of_client:
            request = messages.request(index_row, UNFRAMED, self._context(index_row))
        elif kind is RowKind.UNPARSED:
            response = messages.response(index_row, UNFRAMED, self._context(index_row))
        row = row._replace(request_size=size) if of_client else row._replace(response_size=size)
        return Exchange(row, None, request, response, [finding])

    def non_kafka(self, row: ExchangeRow, kind: RowKind) -> Exchange:
        """A connection on Kafka's port that speaks something else."""
        connection = row.connection - 1
        side = self._endpoints.client_side(connection)
        sizes = [self._ignored_bytes(2 * connection + each) for each in (side, 1 - side)]
        detector = self._indexer.detector
        alert, alert_side = detector.alert(connection)
        closed = self._endpoints.closed(connection)
        is_refused = (
            self._connections.syn_side(connection) >= 0 and closed is not None and not closed[1] and not sizes[1]
        )
        protocol = OtherProtocol(int(detector.other_protocol.values[connection]))
        finding = row_findings.non_kafka(
            row_findings.NonKafka(
                kind, protocol, alert, alert_side == side, is_refused and sizes[0] > 0, self._tls_session(connection)
            )
        )
        row = row._replace(
            request_size=sizes[0], response_size=sizes[1], info=finding.message, severity=finding.severity
        )
        return Exchange(row, None, None, None, [finding])

    def _context(self, index_row: IndexRow) -> DecodingContext:
        """What the conversation teaches about a row."""
        return self._indexer.conversation_state.context(index_row.connection, index_row.packet)

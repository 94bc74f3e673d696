"""One exchange: the fields of its row, its two messages, its findings. Messages are decoded when they are read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from dissector.core.finding import Finding, Severity
from dissector.exchange.connection_facts import NO_LOOKUP, ConnectionFacts
from dissector.exchange.finding_words import marked, with_words
from dissector.exchange.silence_causes import without_repetition
from dissector.protocol.embedded.context import EMPTY_CONTEXT, DecodingContext
from dissector.protocol.embedded.secrets import annotate_secrets
from dissector.protocol.embedded.values import RecordsDecoder, with_annotations, with_decoded
from dissector.protocol.masked_reasons import is_of_end
from dissector.protocol.masking import mask_secrets, needs_search
from dissector.protocol.message import Decoded, Traced, Values, read, trace
from dissector.protocol.message_layout import MessageLayout
from dissector.protocol.tree import ByteSource, Node
from dissector.tls.session import TlsSession

Read = Callable[[bytes, MessageLayout, int], Decoded]
_ORDER = list(Severity)
STORED: Final = frozenset({"batch", "index"})
UNKNOWN_API: Final = "?"
"""The API of a response whose request is missing and whose bytes fit too many APIs."""


class ExchangeRow(NamedTuple):
    """The fields of a row. Texts are as on the wire: they may hold control characters."""

    number: int
    """From 1, in the order in which rows begin."""
    kind: str
    """``exchange``, ``gap``, ``unparsed``, ``tls`` or ``sasl``; ``batch`` or ``index`` for an entry of a Kafka file."""
    time_ns: int
    connection: int
    client: str
    server: str
    api: str
    """A name that ends in ``?`` is inferred, and so is the version: the request is not in the capture."""
    version: int | None
    correlation_id: int | None
    client_id: str | None
    request_size: int | None
    response_size: int | None
    latency_ns: int | None
    """What the client waits: from the request's first byte to the response's last one. The sum of these three:"""
    request_transfer_ns: int | None
    """From the first byte of the request to the last one."""
    wait_ns: int | None
    response_transfer_ns: int | None
    packet: int | None
    """Wireshark's number of the packet with which the row begins; None in Kafka's own files."""
    response_packet: int | None
    info: str
    severity: Severity | None


@dataclass
class ExchangeMessage:
    """One frame. `whole` counts the bytes before the first gap, or all bytes if there is no gap.

    >>> message = capture[0].request
    >>> message
    <ApiVersionsRequest v4, 53 bytes>
    >>> message.size, message.header["client_id"], message.body["client_software_name"]
    (53, 'adminclient-1', 'apache-kafka-java')
    """

    time_ns: int
    size: int
    """Bytes on the wire, size prefix included."""
    data: bytes
    """Bytes captured."""
    whole: int
    layout: MessageLayout
    context: DecodingContext = EMPTY_CONTEXT
    masked: bool = False
    """Whether secrets in `data` were replaced by asterisks."""
    is_cut: bool = False
    """Whether the snap length cut off bytes of it."""
    reads: Read | None = field(default=None, repr=False, compare=False)
    """What decodes it in place of `read`, and gives the same."""
    _decoded: Decoded | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def of_frame(
        cls,
        time_ns: int,
        size: int,
        data: bytes,
        whole: int,
        layout: MessageLayout,
        context: DecodingContext,
        *,
        show_secrets: bool,
    ) -> "ExchangeMessage":
        """Return a message, with secrets masked unless `show_secrets` is true."""
        if show_secrets or not needs_search(layout, context):
            return cls(time_ns, size, data, whole, layout, context)
        shown = mask_secrets(data, size, layout, whole, context)
        message = cls(time_ns, size, shown.data, whole, shown.layout, context, shown.data is not data)
        message._decoded = shown.decoded
        return message

    def __repr__(self) -> str:
        layout = self.layout
        name = f"{layout.body} v{layout.body_version}" if layout.body else "SASL token" if layout.token else "unparsed"
        return f"<{name}, {self.size:,} bytes>"

    if not TYPE_CHECKING:  # so that a checker of types knows that there is none

        def __getitem__(self, name: object) -> object:
            __tracebackhide__ = True
            raise TypeError(f"a message has its fields in body and header: message.body[{name!r}]")

    def repeated(self, time_ns: int, context: DecodingContext) -> "ExchangeMessage":
        """Return the same bytes at another time; they are decoded once for both."""
        other = ExchangeMessage(
            time_ns, self.size, self.data, self.whole, self.layout, context, self.masked, self.is_cut
        )
        other._decoded = self.decoded
        return other

    def with_mask(self) -> "ExchangeMessage":
        """The message with its secrets masked, even if the capture shows them."""
        if self.masked:
            return self
        masked = self.of_frame(
            self.time_ns, self.size, self.data, self.whole, self.layout, self.context, show_secrets=False
        )
        masked.is_cut = self.is_cut
        return masked

    def _decode(self) -> Decoded:
        return (self.reads or read)(self.data, self.layout, self.whole)

    @property
    def decoded(self) -> Decoded:
        """Its values, decoded when first read."""
        if self._decoded is None:
            self._decoded = self._decode()
        return self._decoded

    @cached_property
    def traced(self) -> Traced:
        """Its tree of fields, the byte sources of the tree, and findings."""
        traced = trace(self.data, self.layout, self.whole, self.context)
        if self.masked:
            annotate_secrets(traced.tree)
        return traced

    @property
    def header(self) -> Values:
        """The header's fields; empty if the header could not be read."""
        return self.decoded.header

    @property
    def body(self) -> Values:
        """The body's fields; empty if the body could not be read to its end."""
        decoded = self._decoded  # Not through `decoded`: this is read several times for each message.
        return self.decoded.body if decoded is None else decoded.body

    @property
    def known_body(self) -> Values:
        """The body's fields; if the body could not be read to its end, only the complete fields."""
        return self.body or self.decoded.partial

    @property
    def partial_bytes(self) -> bytes:
        """The bytes of the complete fields of a body that could not be read to its end."""
        return self.decoded.partial_bytes

    @property
    def rest(self) -> bytes:
        """Bytes that belong neither to the header nor to the body."""
        return self.decoded.rest

    @property
    def masked_size(self) -> int:
        """Bytes at the end that belong to no field and are masked because they may hold a secret."""
        return 0 if self.layout.masked_from is None else len(self.data) - self.layout.masked_from

    @property
    def decoded_body(self) -> Values:
        """The body, with the decoded content (``metadata_decoded``) beside bytes fields (``metadata``)."""
        return self.body_with(None)

    def body_with(self, opened: RecordsDecoder | None) -> Values:
        """The same, with `records` fields as in `opened`."""
        if self.layout.token:
            return with_decoded("SaslAuthenticateRequest", self.body, self.context)
        body = self.known_body
        if self.layout.body is None or not body:
            return body
        return with_annotations(self.layout.body, self.layout.body_version, body, self.context, opened)

    @property
    def tree(self) -> Node:
        """All fields with their bytes."""
        return self.traced.tree

    @property
    def sources(self) -> list[ByteSource]:
        """The byte sources of the tree: the frame, then decompressed sections."""
        return self.traced.sources

    @property
    def findings(self) -> list[Finding]:
        """Findings of this message. Damage inside record batches is found only when the tree is built."""
        findings = list(self.decoded.findings)
        missing = self.size - len(self.data)
        if missing:
            findings = [each for each in findings if not is_of_end(each)]  # which is not the message's own
            how = "were cut off by the snap length" if self.is_cut else "were not captured"
            words = f"{missing:,} of {self.size:,} bytes {how}; {self.whole:,} could be read"
            findings.append(Finding("incomplete-frame", Severity.ERROR, words))
        return findings


FirstFetched = tuple[Mapping[str, Sequence[int]], int]
"""Some topics with some of their partitions, and how many more topics there are."""
Describe = Callable[["Exchange"], str]
Find = Callable[["Exchange"], list[Finding]]


class Exchange:
    """A request and its response; either may be missing.

    `fields` are those of `row`, but `info` and `severity` may not be there yet: both bodies have to be decoded for
    them. `describe` returns the info column when `row` is first read, and `find` the findings about the response's
    errors when they are.
    """

    __slots__ = (
        "_describe",
        "_fetched",
        "_find",
        "_own_info",
        "_row_findings",
        "api_key",
        "facts",
        "fields",
        "find_fetched",
        "find_first_fetched",
        "request",
        "response",
        "tls",
    )

    def __init__(
        self,
        fields: ExchangeRow,
        api_key: int | None,
        request: ExchangeMessage | None,
        response: ExchangeMessage | None,
        row_findings: list[Finding] | None = None,
        describe: Describe | None = None,
        find: Find | None = None,
    ) -> None:
        self.fields = fields
        self.api_key = api_key
        self.request = request
        self.response = response
        self._row_findings = [] if row_findings is None else row_findings
        self._find = find
        self._describe = describe
        self._own_info: str | None = None
        self.tls: TlsSession | None = None
        """Of its connection, if that is encrypted."""
        self.facts: ConnectionFacts | None = None
        """Of its connection; None where only the row is known, as in tables."""
        self._fetched: dict[str, list[int]] | None = None
        self.find_fetched: Callable[[], dict[str, list[int]] | None] | None = None
        """Returns `fetched` of an incremental Fetch; None for other requests."""
        self.find_first_fetched: Callable[[int], FirstFetched | None] | None = None
        """The same of `first_fetched`."""

    @property
    def has_session(self) -> bool:
        """Whether it may have `fetched`, which costs as much as the session is large."""
        return self.find_fetched is not None or bool(self._fetched)

    @property
    def fetched(self) -> dict[str, list[int]] | None:
        """The partitions of an incremental Fetch's session, by topic. None for other requests, and where the beginning
        of the session is unknown."""
        if self.find_fetched is not None:
            self._fetched, self.find_fetched = self.find_fetched(), None
        return self._fetched

    @fetched.setter
    def fetched(self, fetched: dict[str, list[int]] | None) -> None:
        self._fetched, self.find_fetched = fetched, None

    def first_fetched(self, most: int) -> FirstFetched | None:
        """Return some of `fetched`, in a time that does not grow with it: the first topics, at most so many, or all."""
        if self.find_fetched is not None and self.find_first_fetched is not None:
            return self.find_first_fetched(most)
        return None if self._fetched is None else (self._fetched, 0)

    def complete(self) -> "Exchange":
        """Find what only the capture knows, so that it may be closed. Returns itself."""
        _ = self.fetched
        return self

    def has_finding(self, finding: Finding) -> bool:
        """Whether a finding is one of the row's: one for which no message is decoded."""
        return finding in self._row_findings

    @property
    def row_findings(self) -> list[Finding]:
        """Findings that are not of one message's bytes alone."""
        if self._find is not None:
            self._row_findings += self._find(self)
            self._find = None
        return self._row_findings

    @property
    def row(self) -> ExchangeRow:
        """The row, with its info column and severity."""
        if self._describe is not None:
            # Twice as fast as `_replace`.
            self.fields = ExchangeRow(*self.fields[:-2], info=self._describe(self), severity=worst(self.findings))
            self._describe = None
        return self.fields

    @row.setter
    def row(self, row: ExchangeRow) -> None:
        self.fields, self._describe = row, None

    def mark(self, findings: list[Finding]) -> None:
        """Add findings of the examination to the row's, and to its info column (`finding_words`). What they say better
        goes."""
        row, before = self.row, self.row_findings
        self._row_findings = [*without_repetition(before, findings), *findings]
        self._own_info = row.info
        words = with_words(marked(row.info, findings), [*before, *findings])
        self.row = row._replace(info=words, severity=worst(self.findings))

    @property
    def own_info(self) -> str:
        """The info column without findings of the examination, as tables have it."""
        row = self.row
        return row.info if self._own_info is None else self._own_info

    @property
    def connection_facts(self) -> ConnectionFacts:
        """What is known of its connection besides messages."""
        return self.facts or ConnectionFacts(self.fields.client, self.fields.server, NO_LOOKUP)

    @property
    def is_stored(self) -> bool:
        """Whether it is an entry of one of Kafka's own files: `request` holds the entry then."""
        return self.fields.kind in STORED

    @property
    def findings(self) -> list[Finding]:
        """All findings, with paths that begin with ``request`` or ``response``."""
        findings = list(self.row_findings)
        for name, message in (("request", self.request), ("response", self.response)):
            if message is not None and (found := message.findings):
                findings += [finding.under(name) for finding in found]
        return findings


def worst(findings: list[Finding]) -> Severity | None:
    """Return the highest severity among findings."""
    return max((f.severity for f in findings), key=_ORDER.index) if findings else None

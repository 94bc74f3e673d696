"""Frames of the index as messages: bytes from the store, the layout to read them with, secrets masked.

Short messages that have to be searched for secrets are kept for a while, as clients begin all their connections with
the same bytes.

Invariant: a message that is kept is what a new search would give: its key is all that the search depends on, but for
names that a conversation teaches, and whoever learns more of them calls `forget`.
"""

from functools import lru_cache
from typing import Final

from dissector.core.store import Store
from dissector.exchange.model import ExchangeMessage, Read
from dissector.index.exchange_table import IndexRow
from dissector.index.frame_table import FrameTable
from dissector.protocol.embedded.context import EMPTY_CONTEXT, DecodingContext
from dissector.protocol.masking import is_public
from dissector.protocol.message import Decoded, read
from dissector.protocol.message_layout import REQUEST_ID, RESPONSE_ID, MessageLayout, request_layout, response_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api

_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
MOST_KEPT: Final = 1 << 11
LONGEST_KEPT: Final = 512
"""Bytes of a message that is kept."""
LONGEST_READ_ONCE: Final = 4_096
MOST_READ_ONCE: Final = 1 << 20
"""Bytes of messages whose values are kept."""
_REQUEST_HEADER: Final = "RequestHeader"
_ID: Final = "correlation_id"


class MessageDecoder:
    """Reads frames. A message decodes itself when its fields are first needed."""

    def __init__(self, store: Store, frames: FrameTable, *, show_secrets: bool, reads: Read | None = None) -> None:
        self._store = store
        self._frames = frames
        self._show_secrets = show_secrets
        self._reads = reads
        self._kept: dict[tuple[object, ...], ExchangeMessage] = {}

    def forget(self) -> None:
        """Forget the messages that are kept: what is known of names may have changed."""
        self._kept.clear()

    def request(
        self, row: IndexRow, layout: MessageLayout, context: DecodingContext = EMPTY_CONTEXT
    ) -> ExchangeMessage:
        """The request of a row, to be read with a layout."""
        return self._message(row.request, row.request_address, row.request_size, row.request_time_ns, layout, context)

    def response(
        self, row: IndexRow, layout: MessageLayout, context: DecodingContext = EMPTY_CONTEXT
    ) -> ExchangeMessage:
        """The response of a row, to be read with a layout."""
        return self._message(
            row.response, row.response_address, row.response_size, row.response_time_ns, layout, context
        )

    def request_layout(self, row: IndexRow) -> MessageLayout:
        """The layout of a request. Of an API or a version that is not known, the bytes decide."""
        needs_bytes = _needs_bytes(row.api_key, row.version)
        return request_layout(row.api_key, row.version, self._frames.read(row.request)[0] if needs_bytes else b"")

    def response_layout(self, key: int, version: int, frame: int) -> MessageLayout:
        """The layout of a response to a request of that API and version. The bytes decide for a version newer than
        those known, and for ApiVersions, the only API whose response may have another version than its request."""
        needs_bytes = key == _API_VERSIONS or _needs_bytes(key, version)
        return response_layout(key, version, self._frames.read(frame)[0] if needs_bytes else b"")

    def _message(
        self, frame: int, address: int, size: int, time_ns: int, layout: MessageLayout, context: DecodingContext
    ) -> ExchangeMessage:
        if address >= 0:
            data = bytes(self._store.read_intact(address, size))
            whole = len(data)
        else:
            data, whole = self._frames.read(frame)
        if len(data) < size or len(data) > LONGEST_KEPT or self._show_secrets or is_public(layout, context):
            found = ExchangeMessage.of_frame(
                time_ns, size, data, whole, layout, context, show_secrets=self._show_secrets
            )
            found.reads = self._reads
            frames = self._frames
            found.is_cut = len(data) < size and frames.snap_length > 0 and bool(frames.is_cut.values[frame])
            return found
        key = (
            data, size, whole, layout, context.enveloped, context.mechanism, context.may_have_secrets,
            context.has_secrets, context.may_cut_secrets, context.fetches_metadata,
        )  # fmt: skip
        kept = self._kept.get(key)
        if kept is None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            kept = ExchangeMessage.of_frame(time_ns, size, data, whole, layout, context, show_secrets=False)
            self._kept[key] = kept
        return kept.repeated(time_ns, context)  # and not itself: its tree would be kept, too


class ReadOnce:
    """Reads messages that are the same but for the correlation id once, for as long as they are kept: for readers that
    change nothing in a body."""

    def __init__(self) -> None:
        self._kept: dict[tuple[MessageLayout, bytes], Decoded] = {}
        self._room = MOST_READ_ONCE

    def __call__(self, data: bytes, layout: MessageLayout, end: int | None = None) -> Decoded:
        """Decode a frame into values, as `read` does."""
        if len(data) > LONGEST_READ_ONCE or layout.header is None or end not in (None, len(data)):
            return read(data, layout, end)
        place = REQUEST_ID if layout.header == _REQUEST_HEADER else RESPONSE_ID
        key = layout, data[: place.start] + data[place.stop :]
        kept = self._kept.get(key)
        if kept is None:
            self._room -= len(data)
            if self._room < 0:
                self._kept.clear()
                self._room = MOST_READ_ONCE - len(data)
            kept = self._kept[key] = read(data, layout, end)
            return kept
        number = int.from_bytes(data[place], "big", signed=True)
        header = {**kept.header, _ID: number} if kept.header else kept.header
        return Decoded(header, kept.body, kept.rest, kept.findings, kept.partial, kept.partial_bytes)


@lru_cache(maxsize=4096)
def _needs_bytes(key: int, version: int) -> bool:
    known = api(key)
    return known is None or version > known.versions.high

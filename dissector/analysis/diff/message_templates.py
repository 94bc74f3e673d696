"""Messages with the same content, as far as a comparison goes: of all frames that are equal there one is decoded.

`frame_templates` finds them. The key of a template has what the leaves of its message are made of: all but the
header, positions that are not negative, and what no leaf shows of records.

Invariants: the content of a frame is what decoding it would give; what is kept is bounded.
"""

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Final

from dissector.analysis.diff.compared_values import is_position
from dissector.analysis.diff.frame_templates import FrameMasks, FrameTemplates, value_spans
from dissector.analysis.diff.matching_keys import Subject, first_error, subject_of
from dissector.analysis.diff.message_leaves import INTEGERS, Leaf, message_leaves
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.embedded.secrets import SECRET_CARRIERS
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.records.entries import RecordsEntryKind, split_entries
from dissector.protocol.schema.loader import api
from dissector.protocol.schema.model import Field
from dissector.protocol.tree import Node

OF_ANY_VERSION: Final = "ApiVersionsResponse"
"""May be answered in another version than was asked (KIP-511)."""
PRODUCE: Final = "ProduceRequest"
"""The one whose records have leaves."""
LONGEST: Final = 1 << 16
"""Bytes of a frame for which a template is made."""
MOST_KEPT: Final = 16 << 20
"""Bytes of a side's messages that are kept; what was read of them and their masks come on top."""
A_MESSAGE: Final = 2_000
"""Bytes that the smallest counts for."""
OF_PART: Final = (slice(8, 12), slice(16, 17))
"""In a part of a `records` field: its size and its magic."""
OF_BATCH: Final = (slice(21, 23), slice(43, 51))
"""What a leaf shows of a batch besides: its attributes and its producer's id."""


class MessageContent:
    """What one message contains for a comparison, and with it all frames that are equal there."""

    def __init__(self, message: ExchangeMessage) -> None:
        self.message = message

    @cached_property
    def leaves(self) -> list[Leaf]:
        return message_leaves(self.message)

    @cached_property
    def error(self) -> int:
        """Of a response, its first error code; 0 for none."""
        return first_error(self.message)

    def subject(self, api_name: str) -> Subject:
        """What a request of that API is about."""
        if self._subject is None:
            self._subject = subject_of(api_name, self.message.body)
        return self._subject

    _subject: Subject | None = None


class MessageTemplates:
    """The messages of one side of a comparison that were decoded."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._kept = 0
        self._by_side = {side: FrameTemplates[MessageContent](LONGEST) for side in (False, True)}

    def content(
        self, is_request: bool, api_key: int, version: int, data: bytes, decode: Callable[[], ExchangeMessage]
    ) -> MessageContent:
        """The content of a frame; `decode` is called if no frame equal to it was decoded."""
        if len(data) > LONGEST or not _is_read_alone(api_key, version):
            return MessageContent(decode())
        templates = self._by_side[is_request]
        number = templates.find(api_key, version, data)
        if number:
            return templates.answer(number)
        content = MessageContent(decode())
        self._kept += len(data) + A_MESSAGE
        if self._kept > MOST_KEPT:
            self._clear()
        else:
            templates.learn(api_key, version, data, content, lambda: _masks(content.message, is_request=is_request))
        return content


@lru_cache(maxsize=4096)
def _is_read_alone(api_key: int, version: int) -> bool:
    """Whether a frame by itself decides how it is read: not one of a version that is not known, nor what a login or an
    envelope holds."""
    known = api(api_key)
    return (
        known is not None and known.versions.contains(version) and not SECRET_CARRIERS & {known.request, known.response}
    )


def _masks(message: ExchangeMessage, *, is_request: bool) -> FrameMasks:
    """The masks of a message. Of one that is odd in any way, or whose version its bytes decide, all bytes belong to the
    layout, but for the correlation id."""
    masks = FrameMasks(message.data, is_request=is_request)
    if message.findings or message.masked or message.layout.body == OF_ANY_VERSION:
        return masks
    for node, start, end in value_spans(message.tree):
        assert node.schema is not None
        if node.schema.type == "records" and node.children:
            _records(masks, message.layout.body, start, end)
        elif not node.path.startswith("body."):
            masks.ignore(start, end)
        elif isinstance(node.value, int) and _moves(node.schema):
            _position(masks, node, start, end)
        else:
            masks.distinguish(start, end)
    return masks


def _position(masks: FrameMasks, node: Node, start: int, end: int) -> None:
    """All positions that are not negative have one leaf."""
    if isinstance(node.value, int) and node.value >= 0:
        masks.ignore(start, end)
    else:
        masks.distinguish(start, end)
    masks.fix_sign(start)


def _records(masks: FrameMasks, body: str | None, start: int, end: int) -> None:
    """Record batches: of those that are produced a leaf shows some of the header, of others nothing."""
    if body not in RECORDS_FIELDS:
        return
    masks.ignore(start, end)
    section = masks.data[start:end]
    for part in split_entries(section) if body == PRODUCE else ():
        at = start + part.start
        if part.kind not in (RecordsEntryKind.BATCH, RecordsEntryKind.MESSAGE):
            masks.fix(at, start + part.end)
            continue
        for each in OF_PART:
            masks.fix(at + each.start, at + each.stop)
        for each in OF_BATCH if part.kind is RecordsEntryKind.BATCH else ():
            masks.distinguish(at + each.start, at + each.stop)


def _moves(field: Field) -> bool:
    """Whether a field's numbers are positions, if they are not negative."""
    return is_position(field.snake_name) and field.element_type in INTEGERS

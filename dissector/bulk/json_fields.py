"""What Python writes into the JSON of many messages: what bytes fields hold, and records that the kernel leaves out, as
those of internal topics, control batches, and messages of old formats.

Real traffic repeats: members of a group send the same subscription again and again. Equal bytes among equal names are
opened once, as long as their texts are kept.

Invariant: a text is what `message_object` has there. None where it may be another one, as the records of a message
share a budget that they may use up.
"""

import ctypes
from functools import lru_cache
from typing import Final, NamedTuple

from dissector.core.arrays import Bool, Int64
from dissector.core.json_text import dumps
from dissector.protocol.codec.json_program import SCOPE, JsonProgram, is_scope
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.embedded.topics import INTERNAL_TOPICS
from dissector.protocol.embedded.values import SUFFIX, decoded_bytes, has_names, records_decoder, topic_of
from dissector.protocol.kernel.json_messages import Holes
from dissector.protocol.message_layout import MessageLayout
from dissector.protocol.record_masking import masked_records
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.schema.field_names import TOPIC_ID
from dissector.protocol.wire import uuid_text

MOST_BYTES: Final = 8 << 20
"""Of texts that are kept, with what they were made of."""
_UNCOMPRESSED: Final = (None, "none")
_MAGIC: Final = 2
"""Of batches; messages of old formats have lower ones."""


class HoledMessages(NamedTuple):
    """The messages that holes are in, each by its hole, `(n,)`."""

    layouts: list[tuple[MessageLayout, JsonProgram]]
    which: Int64
    """The layout of each."""
    is_alone: Bool
    """Whether no other field of it has records."""
    has_compressed: Bool
    """Whether records of it that the kernel wrote are compressed."""


class _Field:
    """A field that is opened."""

    def __init__(self, layout: MessageLayout, program: JsonProgram, column: int) -> None:
        path = program.columns[column].path
        self.is_records = program.columns[column].type == "records"
        self.body, self.version = layout.body or "", layout.body_version
        self.path, self.name = ".".join(path[1:]), path[-1]
        self.scope = sorted({SCOPE.index(each.name) for each in program.columns if is_scope(each)})
        """The names that the message has, by their numbers."""


_field = lru_cache(maxsize=1024)(_Field)


class _Text(NamedTuple):
    text: bytes | None
    """None where it is not known here."""
    is_compressed: bool
    """Whether it depends on a budget."""


_Key = tuple[_Field, bytes, tuple[bytes | None, ...]]


class FieldTexts:
    """The texts of one capture."""

    def __init__(self, context: DecodingContext, *, packs_records: bool, shows_secrets: bool = False) -> None:
        """`context` is that of all connections, which fills as more is learned. With `packs_records`, of records only
        those of internal topics have texts, as they stay decoded (`tables.packing`). Secrets in records are masked,
        unless it `shows_secrets`."""
        self._shows_secrets = shows_secrets
        self._context = context
        self._packs_records = packs_records
        self._names: dict[str, str] = {}
        self._protocols: dict[str, str] = {}
        self._texts: dict[_Key, _Text] = {}
        self._bytes = 0

    def texts(self, holes: Holes, messages: HoledMessages) -> list[bytes | None]:
        """Return the texts of some holes."""
        self._forget_outdated()
        names, name_sizes = holes["names"].tolist(), holes["name_sizes"].tolist()
        places = zip(messages.which.tolist(), holes["column"].tolist(), strict=True)
        fields = [_field(*messages.layouts[which], column) for which, column in places]
        contents = [
            ctypes.string_at(*each) for each in zip(holes["address"].tolist(), holes["size"].tolist(), strict=True)
        ]
        found: list[bytes | None] = []
        for at, (field, raw) in enumerate(zip(fields, contents, strict=True)):
            at_names, sizes = names[at], name_sizes[at]
            key = field, raw, tuple(
                ctypes.string_at(at_names[each], sizes[each]) if sizes[each] >= 0 else None for each in field.scope
            )  # fmt: skip
            text = self._texts.get(key) or self._opened(key)
            is_sure = not messages.has_compressed[at] and (messages.is_alone[at] or not text.is_compressed)
            found.append(text.text if is_sure or not field.is_records else None)
        return found

    def _forget_outdated(self) -> None:
        """Forget texts from before names of topics or protocols of groups were known."""
        names, protocols = self._context.topic_names, self._context.group_protocols
        if names != self._names or protocols != self._protocols:
            self._names, self._protocols = dict(names), dict(protocols)
            self._texts.clear()

    def _opened(self, key: _Key) -> _Text:
        field, raw, scope = key
        budget = frame_budget()
        shown = masked_records(raw, budget) if field.is_records and not self._shows_secrets else raw
        if budget.masked_unopened:  # the decoder has a finding for it
            text = _Text(None, is_compressed=True)
        else:
            text = _opened(field, shown, scope, self._context, packs_records=self._packs_records)
        size = len(key[1]) + len(text.text or b"")
        self._bytes += size
        if self._bytes > MOST_BYTES:
            self._texts.clear()
            self._bytes = size
        self._texts[key] = text
        return text


def _opened(
    field: _Field, raw: bytes, scope: tuple[bytes | None, ...], context: DecodingContext, *, packs_records: bool
) -> _Text:
    """Return the text of a field, with the fields in `field.scope`."""
    names: dict[str, object] = {
        SCOPE[number]: None if value is None else uuid_text(value) if SCOPE[number] == TOPIC_ID else value.decode()
        for number, value in zip(field.scope, scope, strict=True)
    }
    if not field.is_records:
        values = decoded_bytes(raw, (field.body, field.path), context, (names,))
        text = b"" if values is None else f',"{field.name}{SUFFIX}":'.encode() + dumps(values)
        return _Text(text, is_compressed=False)
    decode = records_decoder(context, named=has_names(field.body, field.version, context))
    value = decode(raw, names, {})
    batches = value["batches"]
    assert isinstance(batches, list)
    is_compressed = any(each.get("compression") not in _UNCOMPRESSED for each in batches)
    if packs_records and not _stay_decoded(topic_of(names, context), batches):
        return _Text(None, is_compressed)
    return _Text(dumps(value), is_compressed)


def _stay_decoded(topic: str | None, batches: list[dict[str, object]]) -> bool:
    """Whether records stay decoded where others are packed, and can be read as columns: no messages of old formats."""
    are_read = all(each.get("magic") == _MAGIC and each.get("records") is not None for each in batches)
    return topic in INTERNAL_TOPICS and are_read

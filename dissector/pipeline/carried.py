"""A row of the table of records: of one that an exchange carried, or that stands in a log."""

import hashlib
from collections.abc import Iterator
from typing import Any, Final

from dissector.analysis.records import Carried, of_entry, of_message
from dissector.session.exchange import Exchange

Cells = dict[str, Any]
_WORD: Final = 1 << 63


def carried(exchange: Exchange, made: Cells) -> Iterator[Carried]:
    """Each record of an exchange of which `made` is the JSON."""
    if exchange.is_stored:
        yield from of_entry(exchange.facts.server, made)
        return
    for side, message in (("request", exchange.request), ("response", exchange.response)):
        if message is not None and made.get(side) is not None:
            yield from of_message(message, made[side]["body"])


def cells(record: Carried, *, kept: bool) -> Cells:
    """Its cells; where contents are not `kept`, their sizes and digests."""
    found: Cells = {
        "topic": record.topic or None, "partition": record.partition, "offset": _word(record.offset),
        "timestamp_ms": _word(record.timestamp), "key_size": _size(record.key), "value_size": _size(record.value),
        "headers": [{"key": each["key"], "value": each["value"] if kept else None} for each in record.headers],
        "producer_id": record.producer_id, "producer_epoch": record.producer_epoch, "sequence": record.sequence,
        "codec": record.codec, "control": record.control,
    }  # fmt: skip
    for name, content in (("key", record.key), ("value", record.value)):
        found[name if kept else f"{name}_sha256"] = content if kept else _sha256(content)
    return found


def _word(value: int | None) -> int | None:
    """None for what has no room in 64 bits, as damaged times and offsets may not."""
    return value if value is not None and -_WORD <= value < _WORD else None


def _size(content: bytes | None) -> int | None:
    return None if content is None else len(content)


def _sha256(content: bytes | None) -> bytes | None:
    return None if content is None else hashlib.sha256(content).digest()

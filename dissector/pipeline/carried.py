"""Rows of the table of records: of those that an exchange carried, or that stand in a log."""

import hashlib
from collections.abc import Iterator
from typing import Any, Final

from dissector.analysis.records import Carried, of_entry, of_message
from dissector.pipeline.cells import Cells, Several
from dissector.session.exchange import Exchange

_WORD: Final = 1 << 63


def carried(exchange: Exchange, made: Cells) -> Iterator[Carried]:
    """The records of an exchange of which `made` is the JSON."""
    if exchange.is_stored:
        yield from of_entry(exchange.facts.server, made)
        return
    for side, message in (("request", exchange.request), ("response", exchange.response)):
        if message is not None and made.get(side) is not None:
            yield from of_message(message, made[side]["body"])


def rows(batch: Carried, said: Cells, *, kept: bool) -> Several:
    """Their cells beside what is `said` of all; where contents are not `kept`, their sizes and digests."""
    records = batch.records
    keys, values = [record["key"] for record in records], [record["value"] for record in records]
    shared = said | {
        "topic": batch.topic or None, "partition": batch.partition, "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch, "codec": batch.codec, "control": batch.control,
    }  # fmt: skip
    own: dict[str, list[Any]] = {
        "offset": _words([record["offset"] for record in records]),
        "timestamp_ms": _words([record.get("timestamp") for record in records]),
        "key_size": _sizes(keys), "value_size": _sizes(values), "sequence": batch.sequences,
    }  # fmt: skip
    headers = [record.get("headers", []) for record in records]
    if kept:
        own |= {"key": keys, "value": values, "headers": headers}
    else:
        nameless = [[{"key": each["key"], "value": None} for each in some] for some in headers]
        own |= {"key_sha256": _sha256(keys), "value_sha256": _sha256(values), "headers": nameless}
    return Several(shared, own, len(records))


def _words(values: list[int | None]) -> list[int | None]:
    """None for what has no room in 64 bits, as damaged times and offsets may not."""
    return [value if value is not None and -_WORD <= value < _WORD else None for value in values]


def _sizes(contents: list[bytes | None]) -> list[int | None]:
    return [None if content is None else len(content) for content in contents]


def _sha256(contents: list[bytes | None]) -> list[bytes | None]:
    return [None if content is None else hashlib.sha256(content).digest() for content in contents]

"""Rows of the table of records: of those that an exchange carried, or that stand in a log."""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from dissector.analysis.packing import Packer
from dissector.analysis.records import Carried, carries
from dissector.json_lines import Body
from dissector.pipeline.cells import Cells, Several
from dissector.protocol.message import Values
from dissector.session.exchange import Message

_WORD: Final = 1 << 63


def packing(carried: list[Carried]) -> Body:
    """Gives bodies without records, which go to `carried`."""

    def body(message: Message) -> Values:
        return message.body_with(Packer(message, carried)) if carries(message) else message.decoded_body

    return body


def rows(batch: Carried, said: Cells, *, kept: bool) -> Several:
    """Their cells beside what is `said` of all; where contents are not `kept`, their sizes and digests."""
    offsets, times, keys, values, headers = zip(*batch.records, strict=True)
    shared = said | {
        "topic": batch.topic or None, "partition": batch.partition, "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch, "codec": batch.codec, "control": batch.control,
    }  # fmt: skip
    own: dict[str, Sequence[Any]] = {
        "offset": _words(offsets), "timestamp_ms": _words(times),
        "key_size": _sizes(keys), "value_size": _sizes(values), "sequence": batch.sequences,
    }  # fmt: skip
    if kept:
        own |= {"key": keys, "value": values, "headers": headers}
    else:
        nameless = [[(each.key, None) for each in some] for some in headers]
        own |= {"key_sha256": _sha256(keys), "value_sha256": _sha256(values), "headers": nameless}
    return Several(shared, own, len(offsets))


def _words(values: Sequence[int | None]) -> list[int | None]:
    """None for what has no room in 64 bits, as damaged times and offsets may not."""
    return [value if value is not None and -_WORD <= value < _WORD else None for value in values]


def _sizes(contents: Sequence[bytes | None]) -> list[int | None]:
    return [None if content is None else len(content) for content in contents]


def _sha256(contents: Sequence[bytes | None]) -> list[bytes | None]:
    return [None if content is None else hashlib.sha256(content).digest() for content in contents]

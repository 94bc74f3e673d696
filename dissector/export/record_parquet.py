"""Records as Parquet: keys and values as bytes, and beside them what they are when they are opened, as JSON."""

import io
from collections.abc import Iterator
from typing import Any, Final

from dissector.analysis.record_list import CarriedRecord
from dissector.capture import CaptureError
from dissector.capture_session import Capture
from dissector.core.extras import missing
from dissector.core.json_text import encodable
from dissector.core.process_memory import prepare_arrow, trim
from dissector.records.record import ExchangeRecord
from dissector.records.record_text import json_text
from dissector.records.values.opened import BYTES, OpenedValue

GROUP: Final = 1 << 14
"""Records of a row group, ..."""
GROUP_BYTES: Final = 8 << 20
"""... unless they have more bytes."""
_CONTENTS: Final = ("key", "value", "headers", "key_json", "value_json")
"""Columns that may be large: their least and greatest values would be copied twice, and then not kept."""


def parquet_pieces(capture: Capture, records: Iterator[CarriedRecord]) -> Iterator[bytes]:
    """Yield the pieces of a file. Raises `CaptureError` without pyarrow."""
    prepare_arrow()
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise CaptureError(missing("Parquet needs pyarrow", "tables")) from None
    schema = _schema(pa)
    sink = _Sink()
    counted = [name for name in schema.names if name not in _CONTENTS]
    with parquet.ParquetWriter(sink, schema, compression="zstd", write_statistics=counted) as writer:
        for group in _groups(records):
            writer.write_table(pa.Table.from_pylist(list(map(_row, group)), schema))
            group.clear()  # before the next is read
            trim()
            yield sink.take()
    yield sink.take()


class _Sink(io.RawIOBase):
    """A file that keeps only what was written since the last look."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        self._size += len(self._parts[-1])
        return len(self._parts[-1])

    def tell(self) -> int:
        return self._size

    def take(self) -> bytes:
        """Return what was written, and forget it."""
        data = b"".join(self._parts)
        self._parts.clear()
        return data


def _groups(records: Iterator[CarriedRecord]) -> Iterator[list[CarriedRecord]]:
    group: list[CarriedRecord] = []
    size = 0
    for each in records:
        group.append(each)
        size += len(each.record.key or b"") + len(each.record.value or b"")
        if len(group) == GROUP or size > GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _schema(pa: Any) -> Any:
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    return pa.schema([
        ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("produced", pa.bool_()),
        ("timestamp", pa.timestamp("ms", "UTC")), ("key", pa.binary()), ("value", pa.binary()),
        ("headers", pa.list_(header)), ("key_json", pa.string()), ("value_json", pa.string()),
        ("value_format", pa.string()), ("value_schema", pa.string()), ("exchange", pa.int64()),
    ])  # fmt: skip


def _row(found: CarriedRecord) -> dict[str, object]:
    record: ExchangeRecord = found.record
    value = record.opened_value
    return {
        "topic": encodable(record.topic), "partition": record.partition, "offset": record.offset,
        "produced": record.is_produced, "timestamp": record.timestamp, "key": record.key, "value": record.value,
        "headers": [{"key": encodable(name), "value": content} for name, content in record.headers],
        "key_json": _json(record.opened_key), "value_json": _json(value), "value_format": value.form,
        "value_schema": value.schema or None, "exchange": found.row + 1,
    }  # fmt: skip


def _json(opened: OpenedValue) -> str | None:
    return None if opened.form == BYTES else json_text(opened.value)

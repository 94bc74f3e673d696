"""Finds text in records: in keys, values and headers, as bytes and as they are opened, whatever the case."""

from collections.abc import Callable

from dissector.records.record import ExchangeRecord
from dissector.records.record_text import headers_text, value_text
from tui.records_model import RecordsModel

_WHOLE = 1 << 20


def find_record(model: RecordsModel, query: str, start: int, step: int, is_cancelled: Callable[[], bool]) -> int | None:
    """Return the position of the next record that has a text, around the end; None if there is none, or if that was
    cancelled."""
    text = query.casefold()
    count = len(model)
    for distance in range(1, count + 1):
        position = (start + step * distance) % count
        if is_cancelled():
            return None
        record = model.record(position)
        if record is not None and _has(record, text):
            return position
    return None


def _has(record: ExchangeRecord, text: str) -> bool:
    for data in (record.key, record.value):
        if data is not None and text in data.decode("utf-8", "replace").casefold():
            return True
    opened = (record.opened_key, record.opened_value)
    return any(each.is_structure and text in value_text(each, _WHOLE).casefold() for each in opened) or (
        bool(record.headers) and text in headers_text(record, _WHOLE).casefold()
    )

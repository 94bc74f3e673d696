"""The title of the bytes pane, and what the byte under its cursor is. Without a screen."""

from typing import Final

from dissector.core.text import clean
from tui.exchange_model import ExchangeModel
from tui.labels import byte_readings
from tui.record_source import NAME, RecordSource

_KINDS: Final = {"frame": "frame", NAME: NAME}
"""What sources are called, by name; the others are decompressed."""


def bytes_title(model: ExchangeModel) -> str:
    """Return what the bytes that are shown are, and which others the key b shows. Cleaned, no markup."""
    source, traced, node = model.source, model.traced, model.node
    if source is None:
        return ""
    if model.records is not None:
        return _records_title(model, model.records)
    span = f" {hex_place(node.start, node.end)}" if node is not None and node.size else ""
    name = "bytes" if source.number == 0 else f"bytes · {clean(source.name)}"
    others = [] if traced is None else [each.name for each in traced.sources if each is not source]
    kinds = sorted({_KINDS.get(each, "decompressed") for each in others})
    count = f"{len(others):,} " if len(others) > 1 else ""
    return f"{name}{span}" + (f" · b: {count}{kinds[0] if len(kinds) == 1 else 'others'}" if kinds else "")


def hex_place(start: int, end: int) -> str:
    """Return the offsets of the first and the last byte."""
    return f"{start:#06x}" if end <= start + 1 else f"{start:#06x}–{end - 1:#06x}"


def _records_title(model: ExchangeModel, records: RecordSource) -> str:
    """Say which TLS records are marked, and their packets: those of the selected field, or all."""
    traced, node, size = model.traced, model.node, len(records.source.data)
    if node is None or traced is None:
        return records.words(0, size)
    if node.source == records.source.number:
        return records.words(node.start, node.end)
    return records.words_of_message(*traced.in_frame(node)) or NAME


def byte_words(model: ExchangeModel, data: bytes, offset: int) -> str:
    """Return what a byte of the shown source is: numbers that begin there, or the field that it is encrypted."""
    if model.records is None or model.traced is None:
        return byte_readings(data, offset)
    byte = model.records.message_byte(offset)
    node = model.traced.node_at(0, byte) if byte is not None else None
    of = f" is a byte of {model.side}.{clean(node.path)}, encrypted" if node is not None else ""
    return f"{offset:#06x} {data[offset]:#04x}{of}"

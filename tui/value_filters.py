"""The filters that values make: that of the selected field, those of a row's cells.

It imports the filter engine, so it is imported when a filter is asked for.
"""

import re
from decimal import Decimal
from typing import Final

from dissector.exchange.field_paths import plain_path
from dissector.exchange.model import Exchange
from dissector.exchange.row_field import FieldType
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.filter import FilterError, cell_expression, expression, parse
from dissector.protocol.tree import Node
from tui.exchange_model import ExchangeModel
from tui.labels import is_size_prefix, path_values
from tui.list_columns import column_of
from tui.value_parts import JSON_VALUE, WITHIN

_CELLS: Final = (
    "api", "conn", "client_id", "version", "corr", "latency", "client", "server", "request.size", "response.size",
)  # fmt: skip
"""The row fields whose filters are offered for a row."""
_MEASURED: Final = (FieldType.TIME, FieldType.DURATION)
_MS: Final = 1_000_000
_OPENED: Final = re.compile(r"\.records\[\d+\]\.(key|value)$")
"""Of a record's path: what filters look into."""


def field_filter(model: ExchangeModel) -> str | None:
    """Return the filter for the value of the selected field; for a structure, that it is present. None if no field is
    selected. Raises `FilterError` for parts of the wire that are no fields."""
    node = model.node
    if node is None:
        return None
    if node.type == JSON_VALUE:
        return _member_filter(node)
    if is_size_prefix(node):
        return expression(model.path, int(str(node.value)) + node.size)
    is_structure = node.value is None and node.children and node.note != "null"
    text = expression(plain_path(model.path), {} if is_structure else node.value)
    parse(text)
    return text


def _member_filter(node: Node) -> str | None:
    """Return the filter for a member of a record's key or value that is JSON; None in other fields."""
    field, _, inner = node.path.partition(WITHIN)
    opened = _OPENED.search(field)
    if opened is None:
        return None
    value = float(node.value) if isinstance(node.value, Decimal) else node.value
    text = expression(plain_path(f"record.{opened[1]}{inner}"), {} if node.children else value)
    parse(text)
    return text


def cell_filters(exchange: Exchange) -> list[tuple[str, str]]:
    """Return the filters for the cells of a row, each with the cell's name; the API first. Findings count as cells."""
    codes = dict.fromkeys(finding.code for finding in exchange.findings)
    cells = [(name, ROW_FIELDS[name].from_exchange(exchange)) for name in _CELLS] + [
        ("finding", code) for code in codes
    ]
    found = []
    for name, value in cells:
        text = cell_expression(name, value) if value is not None else ""
        if text and _is_filter(text):
            found.append((name, text))
    return found


def column_filter(exchange: Exchange, column: str) -> str | None:
    """Return the filter for a row's cell in a column of the list: of many values for one of them, of none that there is
    none; of a time for this and later, of a latency for this and longer, as no two are the same. None if there is no
    such filter."""
    field = ROW_FIELDS.get(column_of(column).field)
    if field is None:
        values = path_values(exchange, column)
        texts = [expression(column, values[0])] if values else [f"!{column}", f"{column} == null"]
    else:
        name, value = min(field.names, key=len), next(filter(_exists, field.values(exchange)), None)
        if field.type is FieldType.PRESENCE:
            texts = [name, f"!{name}"]
        else:
            text = cell_expression(name, _whole(value) if field.type is FieldType.DURATION else value)
            texts = [text.replace("==", ">=", 1) if field.type in _MEASURED else text]
    return next((text for text in texts if _is_filter(text) and parse(text).matches(exchange)), None)


def _exists(value: object) -> bool:
    return value is not None


def _whole(nanoseconds: object) -> object:
    """Round down to milliseconds, so that the filter is readable."""
    return nanoseconds // _MS * _MS if isinstance(nanoseconds, int) and nanoseconds >= _MS else nanoseconds


def _is_filter(text: str) -> bool:
    """Return whether it parses: rows that are no exchanges have other words in place of an API."""
    try:
        parse(text)
    except FilterError:
        return False
    return True

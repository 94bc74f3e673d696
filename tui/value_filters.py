"""What a user points at, as the text of a filter: a field of a message, a cell of a row. Without a screen."""

from typing import Final

from dissector.exchange.field_values import plain_path
from dissector.exchange.model import Exchange
from dissector.filter import FilterError, cell_expression, expression, parse
from tui.exchange_model import ExchangeModel
from tui.labels import path_values
from tui.list_columns import INFO

_MEASURED: Final = ("Time", "Latency")
_MS: Final = 1_000_000


def field_filter(model: ExchangeModel) -> str | None:
    """The filter for the value of the chosen field; of a structure, that it is there. None where no field is chosen.
    Raises `FilterError` for what a filter can't ask about: a part of the wire that is no field."""
    node = model.node
    if node is None or node.path == "size":  # a frame's size does not count itself, `request.size` does
        return None
    is_structure = node.value is None and node.children and node.note != "null"
    text = expression(plain_path(model.path), {} if is_structure else node.value)
    parse(text)
    return text


def cell_filters(exchange: Exchange) -> list[tuple[str, str]]:
    """The filters for the cells of a row, each with the cell's name; the API first. Findings are cells too."""
    row = exchange.row
    cells: list[tuple[str, object]] = [
        ("api", row.api), ("conn", row.connection), ("client_id", row.client_id), ("version", row.version),
        ("corr", row.correlation_id), ("latency", row.latency_ns), ("client", row.client), ("server", row.server),
        ("request.size", row.request_size), ("response.size", row.response_size),
        *(("finding", code) for code in dict.fromkeys(finding.code for finding in exchange.findings)),
    ]  # fmt: skip
    found = []
    for name, value in cells:
        text = cell_expression(name, value) if value is not None else ""
        if text and _is_filter(text):
            found.append((name, text))
    return found


def column_filter(exchange: Exchange, column: str) -> str | None:
    """The filter for the cell of a row in a column of the list: of several values for one of them, of none that there
    is none; of a time for this and later, of a latency for this and longer, as no two are the same. None where a filter
    can't ask about it."""
    row = exchange.row
    if column == "API":
        return next((text for name, text in cell_filters(exchange) if name == "api"), None)
    cells: dict[str, tuple[str, object]] = {
        "No.": ("number", row.number), "Time": ("time", row.time_ns), "Conn": ("conn", row.connection),
        "v": ("version", row.version), "Corr": ("corr", row.correlation_id), "Out": ("request.size", row.request_size),
        "In": ("response.size", row.response_size), "Latency": ("latency", _whole(row.latency_ns)),
        "Client": ("client_id", row.client_id), INFO: ("info", row.info or None),
    }  # fmt: skip
    if column in cells:
        text = cell_expression(*cells[column])
        texts = [text.replace("==", ">=", 1) if column in _MEASURED else text]
    else:
        values = path_values(exchange, column)
        texts = [expression(column, values[0])] if values else [f"!{column}", f"{column} == null"]
    return next((text for text in texts if _is_filter(text) and parse(text).matches(exchange)), None)


def _whole(latency_ns: int | None) -> int | None:
    """Whole milliseconds where there are some: a filter that is to be read."""
    return latency_ns if latency_ns is None or latency_ns < _MS else latency_ns // _MS * _MS


def _is_filter(text: str) -> bool:
    """Kinds of rows that are no exchanges have words where their API would be."""
    try:
        parse(text)
    except FilterError:
        return False
    return True

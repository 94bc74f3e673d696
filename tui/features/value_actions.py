"""Makes a filter or a column from the value under the cursor: a cell of the list, or a field."""

import re
from decimal import Decimal
from typing import ClassVar, Final

from textual.binding import Binding

from dissector.core.text import clean
from dissector.exchange.field_paths import plain_path
from dissector.exchange.model import Exchange
from dissector.exchange.row_field import FieldType
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.filter import FilterError, cell_expression, expression, parse
from dissector.protocol.tree import Node
from tui.exchange_model import ExchangeModel
from tui.feature import FIND, ScreenFeature
from tui.labels import is_size_prefix, path_values
from tui.list_columns import column_of
from tui.messages import AddColumn, ApplyFilter
from tui.screens.core_screen import CoreScreen
from tui.screens.dialog import Choice, Menu
from tui.value_parts import JSON_VALUE, WITHIN

_CELLS: Final = (
    "api", "conn", "client_id", "version", "corr", "latency", "client", "server", "request.size", "response.size",
)  # fmt: skip
"""The row fields whose filters are offered for a row."""
_MEASURED: Final = (FieldType.TIME, FieldType.DURATION)
_MS: Final = 1_000_000


class ValueActionsFeature(ScreenFeature[CoreScreen]):
    """a applies a filter, A edits it, c adds a column. In the list they take the row's cell, below it the field."""

    GROUP = FIND

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("a", "as_filter", "As filter", show=False, id="main.apply_as_filter",
                tooltip="Filter by the field under the cursor, or by the cell in the list"),
        Binding("A", "to_filter", "Edit filter", show=False, id="main.prepare_as_filter",
                tooltip="Edit a filter by the field, or by a cell of the row"),
        Binding("c", "as_column", "As column", show=False, tooltip="Add the field as a column",
                id="main.as_column"),
    ]  # fmt: skip

    def action_as_filter(self) -> None:
        """Apply it."""
        if self.screen.focused is self.screen.exchange_list:
            column = self.screen.exchange_list.column or "API"
            text = column_filter(self.screen.model.exchange, column) if self.screen.model.exchange is not None else None
            if text is not None:
                self.screen.post_message(ApplyFilter(text))
            else:
                self.notify(f"no filter for {clean(column)} of this row", timeout=3)
        else:
            self._filter_field(prepare=False)

    def action_to_filter(self) -> None:
        """Edit it."""
        if self.screen.focused is not self.screen.exchange_list:
            self._filter_field(prepare=True)
            return
        cells = cell_filters(self.screen.model.exchange) if self.screen.model.exchange is not None else []

        def prepare(chosen: int | None) -> None:
            if chosen is not None:
                self.screen.post_message(ApplyFilter(cells[chosen][1], prepare=True))

        self.app.push_screen(Menu("Filter on", [Choice(name, clean(text)) for name, text in cells]), prepare)

    def _filter_field(self, *, prepare: bool) -> None:
        try:
            text = field_filter(self.screen.model)
        except FilterError:
            self.notify("this part of the frame is not a field, so no filter can match it", timeout=3)
            return
        if text is None:
            self.notify("select a field first: this part of the frame is not one", timeout=2)
        else:
            self.screen.post_message(ApplyFilter(text, prepare=prepare))

    def action_as_column(self) -> None:
        node = self.screen.model.node
        if node is None or node.name.startswith("(") or node.type == JSON_VALUE:
            self.notify("select a field first: this part of the frame is not one", timeout=2)
        else:
            self.screen.post_message(AddColumn(plain_path(self.screen.model.path)))


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

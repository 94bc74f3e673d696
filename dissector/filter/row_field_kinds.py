"""The values of row fields as a filter compares them."""

from dataclasses import replace
from functools import cache
from typing import Final

from dissector.core.finding import Severity
from dissector.exchange.model import STORED
from dissector.exchange.row_field import FieldType, RowField
from dissector.filter.value_types import ValueKind, ValueType
from dissector.index.exchange_table import KIND_NAMES
from dissector.protocol.schema.enums import API_KEY, ERROR_CODE

_KINDS: Final = {
    FieldType.INTEGER: ValueKind(ValueType.INTEGER),
    FieldType.SIZE: ValueKind(ValueType.INTEGER),
    FieldType.DURATION: ValueKind(ValueType.DURATION, bare=None),
    FieldType.TIME: ValueKind(ValueType.TIME, bare=10**9),
    FieldType.TEXT: ValueKind(ValueType.TEXT),
    FieldType.PRESENCE: ValueKind(ValueType.STRUCT),
    FieldType.KIND: ValueKind(ValueType.TEXT, names=(*KIND_NAMES, *sorted(STORED))),
    FieldType.CONNECTION: ValueKind(ValueType.INTEGER, prefix="C"),
    FieldType.ADDRESS: ValueKind(ValueType.ADDRESS),
    FieldType.API: ValueKind(ValueType.INTEGER, API_KEY, ordered=False),
    FieldType.ERROR: ValueKind(ValueType.INTEGER, ERROR_CODE),
    FieldType.SEVERITY: ValueKind(ValueType.INTEGER, names=tuple(Severity)),
}
_IN_NANOSECONDS: Final = "_ns"


def row_field_kind(field: RowField, name: str = "") -> ValueKind:
    """Return the kind of a row field's values. With a `name` in ``_ns``, numbers without a unit are nanoseconds."""
    kind = _KINDS.get(field.type) or _finding_kind()
    return replace(kind, bare=1) if counts_nanoseconds(field, name) else kind


@cache
def _finding_kind() -> ValueKind:
    from dissector.findings.codes import CODES  # all detectors: most filters need none

    return ValueKind(ValueType.TEXT, names=CODES)


def counts_nanoseconds(field: RowField, name: str) -> bool:
    """Return whether a number without a unit is nanoseconds; for times, nanoseconds since 1970."""
    return name.endswith(_IN_NANOSECONDS) and field.type in (FieldType.DURATION, FieldType.TIME)

"""What a row field is: a name by which a row is asked for something, its type, and where its values come from.

`row_fields` has them all.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final, NamedTuple

from dissector.exchange.index_rows import IndexRows, RowValues, RowValueSets
from dissector.exchange.message_subjects import MessageSubject
from dissector.exchange.model import Exchange

Value = str | int | None
FromExchange = Callable[[Exchange], Value]


class FieldType(StrEnum):
    """What the values of a row field are."""

    INTEGER = "number"
    SIZE = "size"
    DURATION = "duration"
    TIME = "time"
    TEXT = "text"
    PRESENCE = "presence"
    """`true`, or no value."""
    KIND = "kind of row"
    CONNECTION = "connection"
    ADDRESS = "IP address"
    API = "API"
    ERROR = "error"
    FINDING = "finding"
    SEVERITY = "severity"

    @property
    def unit(self) -> str:
        """The unit of a bare number; empty for none."""
        return {FieldType.SIZE: "bytes", FieldType.DURATION: "ns", FieldType.TIME: "ns since 1970"}.get(self, "")


NUMBERS: Final = (FieldType.INTEGER, FieldType.SIZE, FieldType.DURATION, FieldType.TIME)
"""Types whose values are numbers, and print as such."""


class RowField(NamedTuple):
    """A field of rows.

    `from_exchange` gives what JSON and `--fields` print; a field with several values joins them by commas.
    """

    name: str
    description: str
    type: FieldType
    heading: str
    """Above its column."""
    from_exchange: FromExchange
    from_index: tuple[Callable[[IndexRows], RowValues], ...] = ()
    """Its columns of the index, without decoding: a row has the values of all of them. Empty if the index has none."""
    from_summary: Callable[[IndexRows], RowValues | RowValueSets] | None = None
    """Its column once rows have been examined."""
    aliases: tuple[str, ...] = ()
    of_exchanges: bool = False
    """Whether only exchanges have it, and no other kind of row."""
    compared: Callable[[Exchange], Iterable[object]] | None = None
    """The values that a filter compares, if they differ from what is printed: numbers of names, several values."""
    show: Callable[[int], Value] | None = None
    """What is printed for a number of a column."""
    subject: MessageSubject | None = None
    """The fields of messages that it stands for."""
    has_several_values: bool = False
    """Whether a row may have more than one."""
    reads_findings: bool = False
    """Whether it depends on findings: an unexamined capture does not have all of them."""
    json_key: str = ""
    """Its key in the JSON object of an exchange; empty if the object has it elsewhere, or not at all. A field with
    a key has `from_index` and `table_columns`."""
    table_columns: tuple[str, ...] = ()
    """Its columns in the table of exchanges; none if these lack a part of it. The last one has the value of `json_key`,
    unless `_VALUES` of `tables/json_lines.py` says how it is computed."""

    @property
    def is_indexed(self) -> bool:
        """Whether the index gives it without decoding, except for the odd row."""
        return bool(self.from_index)

    @property
    def names(self) -> tuple[str, ...]:
        """The name, then the aliases."""
        return (self.name, *self.aliases)

    def values(self, exchange: Exchange) -> Iterable[object]:
        """The values that a filter compares."""
        if self.compared is not None:
            return self.compared(exchange)
        value = self.from_exchange(exchange)
        return () if value is None else (value,)


def joined(values: Iterable[object]) -> str | None:
    """Several values as one text; None for no value."""
    texts = [str(value) for value in values if value is not None]
    return ",".join(texts) if texts else None

"""What goes to stdout for rows, in each form: the same for `show` and for rows that come live."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from dissector.capture import CaptureError
from dissector.capture_session import Capture
from dissector.cli.fields import TABLE, are_of_the_index, exchange_lines, index_lines, names_line, parse
from dissector.cli.formats import Format
from dissector.cli.rows import head_line, row_line
from dissector.cli.trees import exchange_lines as tree_lines
from dissector.core.arrays import Int64
from dissector.exchange.model import Exchange
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.exchange.to_json import json_line


@dataclass(frozen=True)
class Printing:
    """A form, and the names of its columns: none where whole exchanges are printed."""

    form: Format
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, form: Format, fields: str | None) -> Self:
        """As the options say. Raises `CaptureError` for what does not go together, or has no meaning."""
        if fields is not None:
            if form not in (Format.TEXT, Format.CSV):
                raise CaptureError("--fields: columns are text or csv")
            return cls(form, parse(fields))
        return cls(form, TABLE if form is Format.CSV else ())

    @property
    def head(self) -> bytes:
        """What comes before all rows."""
        if self.form is Format.CSV:
            return names_line(self.names)
        return head_line().encode() + b"\n" if self.form is Format.TEXT and not self.names else b""

    @property
    def is_cheap(self) -> bool:
        """Whether the index has all of it."""
        return bool(self.names) and are_of_the_index(self.names)

    @property
    def shows_findings(self) -> bool:
        """Whether what several rows together tell is seen in it."""
        return not self.names or any(name in ROW_FIELDS and ROW_FIELDS[name].reads_findings for name in self.names)

    @property
    def names_findings_only(self) -> bool:
        """Whether findings are shown by their codes. These are known once a row was examined; their words may still
        change (how often, for how long) until the last row was."""
        return self.form in (Format.TEXT, Format.CSV)

    def lines(self, capture: Capture, rows: range | Int64) -> Iterator[bytes]:
        """What is printed for rows of a capture, from 0 and ascending."""
        if self.is_cheap:
            return index_lines(capture, self.names, rows, as_csv=self.form is Format.CSV)
        return self.exchanges(capture.at(rows), capture.start_ns)

    def exchanges(self, exchanges: Iterable[Exchange], start_ns: int) -> Iterator[bytes]:
        """What is printed for exchanges of a capture that began then, a piece each."""
        if self.names:
            return exchange_lines(self.names, exchanges, as_csv=self.form is Format.CSV)
        if self.form is Format.JSON:
            return map(json_line, exchanges)
        if self.form is Format.TEXT:
            return (row_line(exchange.row, start_ns).encode() + b"\n" for exchange in exchanges)
        return ("\n".join(tree_lines(exchange, start_ns)).encode() + b"\n" for exchange in exchanges)

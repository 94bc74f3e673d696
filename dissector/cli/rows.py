"""`show --format text`: one line an exchange, in columns, for reading and for grep."""

from collections.abc import Iterator
from typing import Final

from dissector.capture_file import Capture
from dissector.session.exchange import Row
from dissector.text import clean, duration, seconds, size

_LAYOUT: Final = "{:>6} {:>12} {:>5} {:<24} {:>3} {:>7} {:>7} {:>7} {:>9}  {}"
_HEAD: Final = ("No.", "Time", "Conn", "API", "v", "Corr", "Out", "In", "Latency", "Info")


class Table:
    """Lines of a capture's rows, the head first."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._headed = False

    def lines(self, number: int) -> Iterator[str]:
        """The lines for a row: one, and the head before the first."""
        if not self._headed:
            self._headed = True
            yield _LAYOUT.format(*_HEAD)
        row = self._capture.row(number)
        yield row_line(row, self._capture.start_ns).rstrip()


def row_line(row: Row, start_ns: int) -> str:
    """One row as a line; texts cleaned."""
    client = "" if row.client_id is None else f"{row.client_id}: "
    return _LAYOUT.format(
        row.number,
        seconds(row.time_ns - start_ns),
        f"C{row.connection}",
        clean(row.api),
        "" if row.version is None else row.version,
        "" if row.correlation_id is None else row.correlation_id,
        "-" if row.request_size is None else size(row.request_size),
        "-" if row.response_size is None else size(row.response_size),
        "" if row.latency_ns is None else duration(row.latency_ns),
        clean(f"{client}{row.info}"),
    )

"""`show --format text`: one line for each exchange, in columns, for reading and for grep."""

from typing import Final

from dissector.core.text import clean, duration, seconds, shortened, size
from dissector.exchange.model import ExchangeRow

_LAYOUT: Final = "{:>6} {:>12} {:>5} {:<24} {:>3} {:>7} {:>7} {:>7} {:>9}  {}"
_HEAD: Final = ("No.", "Time", "Conn", "API", "v", "Corr", "Out", "In", "Latency", "Info")


def head_line() -> str:
    """Return the line of column names."""
    return _LAYOUT.format(*_HEAD)


def row_line(row: ExchangeRow, start_ns: int) -> str:
    """Format a row as a line that is safe for a terminal."""
    client = "" if row.client_id is None else f"{shortened(row.client_id)}: "
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
    ).rstrip()

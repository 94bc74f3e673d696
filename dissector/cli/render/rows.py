"""`show --format text`: one line for each exchange, in columns, for reading and for grep."""

from functools import lru_cache
from typing import Final

from dissector.core.text import clean, duration, seconds, shortened, size
from dissector.exchange.model import ExchangeRow

API_WIDTH: Final = 24
_LAYOUT: Final = f"{{:>6}} {{:>12}} {{:>5}} {{:<{API_WIDTH}}} {{:>3}} {{:>7}} {{:>7}} {{:>7}} {{:>9}}  {{}}"
_HEAD: Final = ("No.", "Time", "Conn", "API", "v", "Corr", "Out", "In", "Latency", "Info")


def head_line() -> str:
    """Return the line of column names."""
    return _LAYOUT.format(*_HEAD)


@lru_cache(maxsize=4096)
def words(client_id: str | None, info: str) -> str:
    """The last column, without spaces at its end."""
    return clean(info if client_id is None else f"{shortened(client_id)}: {info}").rstrip()


def row_line(row: ExchangeRow, start_ns: int) -> str:
    """Format a row as a line that is safe for a terminal."""
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
        words(row.client_id, row.info),
    ).rstrip()

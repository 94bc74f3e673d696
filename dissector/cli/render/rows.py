"""`show --format text`: one line for each exchange, in columns, for reading and for grep."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from dissector.core.text import clean, duration, seconds, shortened, size
from dissector.exchange.model import ExchangeRow
from dissector.exchange.row_fields import Value

_LAYOUT: Final = "{:>6} {:>12} {:>5} {:<24} {:>3} {:>7} {:>7} {:>7} {:>9}  {}"
_HEAD: Final = ("No.", "Time", "Conn", "API", "v", "Corr", "Out", "In", "Latency", "Info")


def head_line() -> str:
    """Return the line of column names."""
    return _LAYOUT.format(*_HEAD)


COLUMNS: Final = (
    "number", "time", "connection", "api", "api_version", "correlation_id", "request.size", "response.size", "latency",
    "client_id",
)  # fmt: skip
"""The row fields of the line of an exchange that has its request; the info column follows."""
_LINE: Final = "%6d %12s %5s %-24s %3d %7d %7s %7s %9s  %s"
_LINE_IN_ORDER: Final = _LINE.replace("%12s", "%5d.%06d")
"""With the seconds and microseconds of a time that is not before the start."""


def exchange_lines(columns: Sequence[Sequence[Value]], info: Sequence[str], start_ns: int) -> Iterator[str]:
    """Format exchanges that have their requests, given as `COLUMNS`: the same lines, in a quarter of the time."""
    number, time, connection, api, version, correlation_id, request, response, latency, client = columns
    since = np.array(time, np.int64) - start_ns
    times: list[Iterable[object]] = [map(seconds, since.tolist())]
    is_in_order = not len(since) or since.min() >= 0
    if is_in_order:
        whole, rest = np.divmod(since, 1_000_000_000)
        times = [whole.tolist(), (rest // 1_000).tolist()]
    cells = (
        number, *times, map(_connection, connection), map(_clean, api), version, correlation_id, map(_size, request),
        map(_size, response), map(_latency, latency), map(_words, client, info),
    )  # fmt: skip
    form = _LINE_IN_ORDER if is_in_order else _LINE
    return (line if line[-1] > " " else line.rstrip() for line in map(form.__mod__, zip(*cells, strict=True)))


@lru_cache(maxsize=4096)
def _connection(number: Value) -> str:
    return f"C{number}"


_clean = lru_cache(maxsize=1024)(clean)


@lru_cache(maxsize=4096)
def _size(count: int | None) -> str:
    return "-" if count is None else size(count)


@lru_cache(maxsize=4096)
def _latency(ns: int | None) -> str:
    return "" if ns is None else duration(ns)


@lru_cache(maxsize=4096)
def _words(client_id: str | None, words: str) -> str:
    return clean(words if client_id is None else f"{shortened(client_id)}: {words}")


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
        _words(row.client_id, row.info),
    ).rstrip()

"""Rows of the index as columns, for detectors that read no bodies."""

from collections.abc import Callable
from functools import cached_property
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.index.exchange_table import NO_FRAME, Flag, RowKind


class ExaminedRows:
    """Rows of the index, ascending, with columns of the frame table: zeros if there is no frame. What most detectors
    ask of them is found once for all.

    A column is made when it is first asked for: no detector needs all, and many look at the rows of one connection."""

    row: Int64
    kind: Int64
    connection: Int64
    packet: Int64
    """Number of the packet with which a row begins, ascending."""
    api_key: Int64
    version: Int64
    correlation_id: Int64
    client_id: Int64
    flags: Int64
    request: Int64
    response: Int64
    request_ns: Int64
    response_ns: Int64
    request_packet: Int64
    response_packet: Int64
    """Number of the packet with the response's first byte."""
    request_start: Int64
    """Stream offset of the request."""
    response_start: Int64
    request_address: Int64
    """Address of the request if it is contiguous, else a negative number."""
    response_address: Int64
    request_size: Int64
    response_size: Int64
    request_transfer_ns: Int64
    """From the first byte of the request to the last one."""
    response_transfer_ns: Int64

    def __init__(self, make: "Callable[[LazyColumns, str], Int64]") -> None:
        """`make` returns a column of these rows by its name, `(n,)`."""
        self._columns = LazyColumns(make)

    def __getattr__(self, name: str) -> Int64:
        if name not in COLUMNS:
            raise AttributeError(name)
        column = getattr(self._columns, name)
        setattr(self, name, column)
        return column  # type: ignore[no-any-return]  # all of them are columns

    def __getstate__(self) -> dict[str, Int64]:
        """For a checkpoint: the columns."""
        return {name: getattr(self, name) for name in COLUMNS}

    def __setstate__(self, columns: dict[str, Int64]) -> None:
        self._columns = LazyColumns(lambda _, name: columns[name])

    def kept(self) -> "ExaminedRows":
        """Return the rows as they are now, for who looks at them again in later steps."""
        columns = self.__getstate__()
        return ExaminedRows(lambda _, name: columns[name])

    def followed_by(self, others: "ExaminedRows") -> "ExaminedRows":
        """Return these rows and others."""
        ours, theirs = self._columns, others._columns
        return ExaminedRows(lambda _, name: np.concatenate((getattr(ours, name), getattr(theirs, name))))

    def where(self, which: Bool | Int64 | slice) -> "ExaminedRows":
        """Return the rows of a mask, of positions or of a slice."""
        at = np.flatnonzero(which) if isinstance(which, np.ndarray) and which.dtype == np.bool_ else which
        columns = self._columns  # a mask would be searched for each column
        return ExaminedRows(lambda _, name: getattr(columns, name)[at])

    @cached_property
    def latency_ns(self) -> Int64:
        """What the client waits, of rows with both sides; the sum of `wait_ns` and the transfers."""
        return self.response_ns + self.response_transfer_ns - self.request_ns

    @cached_property
    def wait_ns(self) -> Int64:
        """From the last byte of the request to the first one of the response, of rows with both sides."""
        return self.response_ns - self.request_ns - self.request_transfer_ns

    @cached_property
    def is_exchange(self) -> Bool:
        """Which rows are exchanges."""
        found: Bool = self.kind == RowKind.EXCHANGE
        return found

    @cached_property
    def has_both(self) -> Bool:
        """Which rows are exchanges with request and response."""
        found: Bool = self.is_exchange & (self.request != NO_FRAME) & (self.response != NO_FRAME)
        return found

    @cached_property
    def with_request(self) -> "ExaminedRows":
        """The exchanges with a request."""
        return self.where(self.is_exchange & (self.request != NO_FRAME))

    @cached_property
    def with_response(self) -> "ExaminedRows":
        """The exchanges with request and response."""
        return self.where(self.has_both)

    @cached_property
    def unanswered(self) -> "ExaminedRows":
        """The exchanges without the response that they should have."""
        waits = self.is_exchange & (self.response == NO_FRAME)
        return self.where(waits & (self.flags & Flag.NO_RESPONSE_EXPECTED == 0))


class LazyColumns:
    """Columns that are made when they are first asked for. Rows chosen of others keep these and not the rows, which may
    keep them: there are no cycles, as garbage is rarely searched for."""

    row: Int64

    def __init__(self, make: "Callable[[LazyColumns, str], Int64]") -> None:
        self._make = make

    def __getattr__(self, name: str) -> Int64:
        if name not in COLUMNS:
            raise AttributeError(name)
        column = self._make(self, name)
        setattr(self, name, column)
        return column


COLUMNS: Final = tuple(ExaminedRows.__annotations__)
"""Their names."""

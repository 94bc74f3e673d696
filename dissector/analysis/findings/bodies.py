"""Exchanges looked into, once for all finders: every response, as any may say no; requests where a finder asks for them."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from dissector.analysis.findings.finder import BodyFinder, Rows, Seen
from dissector.protocol.message import PREFIX, Shape, Values, read, request_shape, response_shape
from dissector.session.frames import FrameTable
from dissector.session.structs import structs_with
from dissector.session.summary import ERROR_CODES
from dissector.session.table import NO_FRAME
from dissector.store import Store

SMALL: Final = 512
KEPT: Final = 1_024
"""Small responses that are kept, read."""
ID_END: Final = PREFIX + 4
Answer = tuple[Values, list[int]]
"""A response's body, and its errors."""


class Bodies:
    """Reads, and hands out."""

    def __init__(self, store: Store, frames: FrameTable, finders: Sequence[BodyFinder]) -> None:
        self._store = store
        self._frames = frames
        self._asks = frozenset[int]().union(*(finder.apis for finder in finders if finder.reads_requests))
        self._finders = finders
        self._of_errors: list[Callable[[Seen], None]] = [finder.look for finder in finders if finder.any_error]
        self._by_key: dict[int, list[Callable[[Seen], None]]] = {}
        self._small = lru_cache(maxsize=KEPT)(_answer)

    def take(self, rows: Rows) -> None:
        """The next rows, exchanges with a request."""
        columns = (
            rows.row, rows.connection, rows.api_key, rows.version, rows.asked_ns, rows.answered_ns, rows.request,
            rows.response, self._frames.contiguous(rows.request), rows.asked_size,
        )  # fmt: skip
        answers = self._frames.contiguous(rows.response).tolist()
        sizes = self._frames.size.values[rows.response].tolist()
        for number, line in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            row, connection, key, version, asked_ns, answered_ns, request, response, address, size = line
            look = self._looks(key)
            body: Values = {}
            answer: Answer = ({}, [])
            if response != NO_FRAME:
                answer = self._answered(key, version, response, answers[number], sizes[number])
            if key in self._asks:
                data, whole = self._read(request, address, size)
                body = read(data, request_shape(key, version, data), whole).body
            if look or answer[1]:
                seen = Seen(row, connection, key, version, asked_ns, answered_ns, body, *answer)
                for each in look:
                    each(seen)
                if answer[1]:
                    for each in self._of_errors:
                        each(seen)

    def _looks(self, key: int) -> list[Callable[[Seen], None]]:
        """What finders look at an API."""
        found = self._by_key.get(key)
        if found is None:
            found = [each.look for each in self._finders if key in each.apis]
            self._by_key[key] = found
        return found

    def _read(self, frame: int, address: int, size: int) -> tuple[bytes, int]:
        return (bytes(self._store.read(address, size)), size) if address >= 0 else self._frames.read(frame)

    def _answered(self, key: int, version: int, frame: int, address: int, size: int) -> Answer:
        data, whole = self._read(frame, address, size)
        if whole == size <= SMALL:
            return self._small(key, version, bytes(ID_END) + data[ID_END:])
        return _answer(key, version, data, whole)


def _answer(key: int, version: int, data: bytes, whole: int | None = None) -> Answer:
    shape = response_shape(key, version, data)
    body = read(data, shape, whole).body
    return body, _errors(shape, body)


def _errors(shape: Shape, body: Values) -> list[int]:
    """Error codes that are not 0, each as often as it stands there."""
    found: list[int] = []
    for struct in structs_with(shape, body, ERROR_CODES):
        for name in ERROR_CODES:
            code = struct.get(name)
            if code and isinstance(code, int):
                found.append(code)
    return found

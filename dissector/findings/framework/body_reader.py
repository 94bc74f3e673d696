"""Exchanges looked into, once for all finders: every response, as any may say no; requests where a finder asks.

Of a Produce response that says nothing but where its batches went, not even the body is read: it is empty for finders.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Final

import numpy as np

from dissector.core.arrays import Bool
from dissector.core.store import Store
from dissector.exchange.frame_templates import FrameMasks, FrameTemplates, value_spans
from dissector.exchange.info_column import ERROR_CODES
from dissector.findings.framework.decoded_exchange import Seen
from dissector.findings.framework.detector import OverBodies
from dissector.findings.framework.examined_rows import Rows
from dissector.index.exchange_table import NO_FRAME
from dissector.index.frame_table import FrameTable
from dissector.protocol.codec.structs import structs_with
from dissector.protocol.message import PREFIX, MessageLayout, Values, read, response_layout, trace
from dissector.protocol.schema.api_keys import ApiKey

SMALL: Final = 1_024
KEPT: Final = 512
"""Small responses that are kept, read: heartbeats, empty fetches and the versions of a broker have the same
bytes behind their ids, again and again."""
ID_END: Final = PREFIX + 4
Answer = tuple[Values, list[int]]
"""A response's body, and its errors."""
LONGEST_CLEAN: Final = 256
"""Bytes of a response for which there are templates."""
MAY_DIFFER: Final = frozenset(("index", "base_offset", "log_append_time_ms", "log_start_offset"))
NONE: Final[Answer] = ({}, [])
Look = Callable[[Seen], None]


class CleanResponses:
    """Produce responses without error or throttling, recognized by templates: most of a busy capture is these.

    Invariant: whatever is recognized reads as such: a property test."""

    def __init__(self, store: Store, key: int) -> None:
        self._store = store
        self._key = key
        self._templates = FrameTemplates[bool](LONGEST_CLEAN)

    def find(self, rows: Rows) -> Bool:
        """Which rows have such a response, as far as templates show."""
        found = np.zeros(len(rows.row), np.bool_)
        some = np.flatnonzero((rows.api_key == self._key) & (rows.response != NO_FRAME))
        columns = (rows.api_key, rows.version, rows.answered_at, rows.answered_size)
        found[some] = self._templates.find_all(self._store, *(column[some] for column in columns)) > 0
        return found

    def learn(self, version: int, data: bytes) -> None:
        """A response was read and is clean."""
        self._templates.learn(self._key, version, data, True, lambda: self._masks(version, data))

    def _masks(self, version: int, data: bytes) -> FrameMasks:
        masks = FrameMasks(data, is_request=False)
        for node, start, end in value_spans(trace(data, response_layout(self._key, version, data)).tree):
            if node.name in MAY_DIFFER or not node.path.startswith("body."):
                masks.ignore(start, end)
            else:
                masks.distinguish(start, end)
        return masks


class Bodies:
    """Reads, and hands out."""

    def __init__(self, store: Store, frames: FrameTable, finders: Sequence[OverBodies]) -> None:
        self._store = store
        self._frames = frames
        self._finders = finders
        self._at_trouble: list[Look] = [finder.look for finder in finders if finder.any_trouble]
        self._by_key: dict[int, list[Look]] = {}
        self._clean = CleanResponses(store, ApiKey.PRODUCE)
        self._small = lru_cache(maxsize=KEPT)(_answer)

    def take(self, rows: Rows) -> None:
        """The next rows, exchanges with a request."""
        columns = (
            rows.row, rows.connection, rows.packet, rows.asked_start, rows.api_key, rows.version, rows.asked_ns,
            rows.answered_ns, rows.request, rows.asked_at, rows.asked_size,
            np.where(self._clean.find(rows), NO_FRAME, rows.response), rows.answered_at, rows.answered_size,
        )  # fmt: skip
        for row, connection, packet, start, key, version, asked_ns, answered_ns, *frames in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            request, response = frames[:3], frames[3:]
            body, errors = NONE if response[0] == NO_FRAME else self._answered(key, version, *response)
            looks = self._looks(key)
            if errors or body.get("throttle_time_ms"):
                looks = looks + [each for each in self._at_trouble if each not in looks]
            if looks:
                asked = partial(self._read, *request)
                seen = Seen(row, connection, packet, start, key, version, asked_ns, answered_ns, asked, body, errors)
                for look in looks:
                    look(seen)

    def _looks(self, key: int) -> list[Look]:
        """The finders of an API."""
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = [each.look for each in self._finders if key in each.apis]
        return found

    def _read(self, frame: int, address: int, size: int) -> tuple[bytes, int]:
        """A frame's bytes, and how many come before the first hole. Most are in one piece."""
        return (bytes(self._store.read(address, size)), size) if address >= 0 else self._frames.read(frame)

    def _answered(self, key: int, version: int, frame: int, address: int, size: int) -> Answer:
        data, whole = self._read(frame, address, size)
        if key == ApiKey.PRODUCE:
            answer = _answer(key, version, data, whole)
            if whole == len(data) and not answer[1] and not answer[0].get("throttle_time_ms"):
                self._clean.learn(version, data)
            return answer
        if whole == len(data) <= SMALL:
            return self._small(key, version, bytes(ID_END) + data[ID_END:], whole)
        return _answer(key, version, data, whole)


def _answer(key: int, version: int, data: bytes, whole: int) -> Answer:
    shape = response_layout(key, version, data)
    body = read(data, shape, whole).body
    return body, _errors(shape, body)


def _errors(shape: MessageLayout, body: Values) -> list[int]:
    """Error codes that are not 0, each as often as it stands there."""
    found: list[int] = []
    for struct in structs_with(shape, body, ERROR_CODES):
        for name in ERROR_CODES:
            code = struct.get(name)
            if code and isinstance(code, int):
                found.append(code)
    return found

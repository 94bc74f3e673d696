"""Recognizes Produce responses without errors or throttling, without decoding them.

Invariant: every recognized response has no error when it is decoded: a property test.
"""

from typing import Final

import numpy as np

from dissector.core.arrays import Bool
from dissector.core.store import Store
from dissector.exchange.frame_templates import FrameMasks, FrameTemplates, value_spans
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.index.exchange_table import NO_FRAME
from dissector.protocol.message import response_layout, trace

MAX_SIZE: Final = 256
"""Maximum bytes of a response for which there are templates."""
MAY_DIFFER: Final = frozenset(("index", "base_offset", "log_append_time_ms", "log_start_offset"))


class CleanResponses:
    """Templates of such responses, which are most frames of a busy capture."""

    def __init__(self, store: Store, key: int) -> None:
        self._store = store
        self._key = key
        self._templates = FrameTemplates[bool](MAX_SIZE)

    def find(self, rows: ExaminedRows) -> Bool:
        """Return which rows have such a response, as far as templates show."""
        found = np.zeros(len(rows.row), np.bool_)
        candidates = np.flatnonzero((rows.api_key == self._key) & (rows.response != NO_FRAME))
        columns = (rows.api_key, rows.version, rows.response_address, rows.response_size)
        found[candidates] = self._templates.find_all(self._store, *(column[candidates] for column in columns)) > 0
        return found

    def learn(self, version: int, data: bytes) -> None:
        """Learn a template from a decoded response that is clean."""
        self._templates.learn(self._key, version, data, True, lambda: self._masks(version, data))

    def _masks(self, version: int, data: bytes) -> FrameMasks:
        masks = FrameMasks(data, is_request=False)
        for node, start, end in value_spans(trace(data, response_layout(self._key, version, data)).tree):
            if node.name in MAY_DIFFER or not node.path.startswith("body."):
                masks.ignore(start, end)
            else:
                masks.distinguish(start, end)
        return masks

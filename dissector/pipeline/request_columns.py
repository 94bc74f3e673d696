"""Columns of `exchanges` with what requests ask for, and how long a quota throttles: numbers of bodies.

Invariant: `number_cells` and `number_columns` give the same (a test over all captures).
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from dissector.bulk.body_fields import OfBodies
from dissector.pipeline.carried_columns import Columns
from dissector.pipeline.partition_cells import ISOLATION
from dissector.tables.arrow_types import chosen
from dissector.tables.row_batches import Cells
from dissector.tables.schemas import OF_REQUEST, OF_RESPONSE

_ISOLATION: Final = "isolation_level"
_LEVELS: Final = (*ISOLATION.values(), None)
_SIDES: Final = (("request", OF_REQUEST), ("response", OF_RESPONSE))


def number_cells(content: Cells) -> Cells:
    """Return the cells of one exchange, given as its JSON object."""
    found: Cells = {}
    for side, names in _SIDES:
        message: Any = content.get(side) or {}
        body = message.get("body")
        if not isinstance(body, dict):
            body = {}
        found |= {name: body.get(name) for name in names}
    return found | {_ISOLATION: ISOLATION.get(found[_ISOLATION])}


def number_columns(of_side: Callable[..., dict[str, OfBodies]]) -> Columns:
    """Return the columns of many exchanges; `of_side` gives fields of their requests, or of their responses."""
    numbers = of_side(OF_REQUEST, is_request=True) | of_side(OF_RESPONSE, is_request=False)
    level = numbers.pop(_ISOLATION)
    is_known = level.is_there & (level.values >= 0) & (level.values < len(ISOLATION))
    columns = {name: pa.array(each.values, pa.int32(), mask=~each.is_there) for name, each in numbers.items()}
    return columns | {_ISOLATION: chosen(_LEVELS, np.where(is_known, level.values, len(ISOLATION)).astype(np.int64))}

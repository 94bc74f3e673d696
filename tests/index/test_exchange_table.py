"""The index: rows are brought in order at the end, and whoever kept their numbers learns the new ones."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissector.core.columns import Column
from dissector.index import exchange_table
from dissector.index.exchange_table import ExchangeTable


@example([1, 0, 2, 4, 3, 5, 7, 6, 8, 9], 0, 10)  # more than one place where rows can be parted
@example([1, 0, 2, 4, 3, 5, 7, 6, 8, 9], 0, 5)
@example([1, 0, 2, 4, 3, 5, 7, 6, 9, 8, 10, 11, 13, 12], 0, 7)
@given(st.lists(st.integers(0, 30), max_size=60), st.integers(0, 10), st.sampled_from([1, 2, 5, 1000]))
def test_rows_are_found_again_when_they_got_their_final_order(packets: list[int], ordered: int, step: int) -> None:
    """`correlation_id` tells the rows apart; a first part is in order already."""
    packets = [*range(-ordered, 0), *packets]
    table = ExchangeTable()
    count = len(packets)
    table.add(np.zeros(count, np.int64), np.array(packets, np.int64), correlation_id=np.arange(count))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exchange_table, "SORT_STEP", step)
        table.sort_rows(Column(np.int64))
    moved = table.rows_after_sort(np.arange(count))
    assert (np.diff(table.packet.values) >= 0).all()
    assert table.correlation_id.values[moved].tolist() == list(range(count))

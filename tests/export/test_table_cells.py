"""Lines of cells: the kernel writes those that Python does."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from dissector.exchange.listing import Cells
from dissector.exchange.row_field import Value
from dissector.export.table_cells import as_tabs, tab_lines

NUMBERS = st.integers(-(2**63), 2**63 - 1)
VALUES = st.none() | NUMBERS | st.sampled_from((0, -1, "", "a\tb\n", "\x1b[2J", "ärger")) | st.text(max_size=5)


@given(st.integers(1, 5).flatmap(lambda columns: st.lists(st.tuples(*[VALUES] * columns), min_size=1)))
def test_lines_are_those_of_the_values(rows: Sequence[tuple[Value, ...]]) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)]
    cells = [Cells.of(column) for column in columns]
    assert [each.listed() for each in cells] == columns
    assert tab_lines(cells) == as_tabs(columns)

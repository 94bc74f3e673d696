"""Filters over exchanges: ``api == Fetch && response.error_code != 0 && latency > 50ms``.

`parse` compiles a filter, `Capture.select` finds the matching rows, `complete` lists completions at a cursor,
`expression` and `cell_expression` write the filter for a value. Import this only when there is a filter: it imports
lark, which takes a twentieth of a second.
"""

from dissector.filter.compiler import Filter, parse
from dissector.filter.completion import Completion, complete
from dissector.filter.errors import FilterError
from dissector.filter.from_value import cell_expression, expression
from dissector.filter.selection import SelectedRows

__all__ = ["Completion", "Filter", "FilterError", "SelectedRows", "cell_expression", "complete", "expression", "parse"]

"""Filters over exchanges: ``api == Fetch && response.error_code != 0 && latency > 50ms``.

`parse` gives a text a meaning, `Capture.select` finds the rows that fit; `complete` says what may stand where somebody
types, `expression` and `cell_expression` write the filter for a value. Importing this imports lark, which takes a
twentieth of a second: only who has a filter does.
"""

from dissector.filter.compiler import Filter, parse
from dissector.filter.completion import Completion, complete
from dissector.filter.errors import FilterError
from dissector.filter.from_value import cell_expression, expression
from dissector.filter.selection import SelectedRows

__all__ = ["Completion", "Filter", "FilterError", "SelectedRows", "cell_expression", "complete", "expression", "parse"]

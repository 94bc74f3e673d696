"""Filters over exchanges: ``api == Fetch && response.error_code != 0 && latency > 50ms``.

`parse` gives a text a meaning, `Capture.select` finds the rows that fit; `complete` says what may stand where somebody
types, `expression` and `cell_expression` write the filter for a value. Importing this imports lark, which takes a
twentieth of a second: only who has a filter does.
"""

from dissector.analysis.filter.completion import Completion, complete
from dissector.analysis.filter.errors import FilterError
from dissector.analysis.filter.meaning import Filter, parse
from dissector.analysis.filter.selection import Selected
from dissector.analysis.filter.wording import cell_expression, expression

__all__ = ["Completion", "Filter", "FilterError", "Selected", "cell_expression", "complete", "expression", "parse"]

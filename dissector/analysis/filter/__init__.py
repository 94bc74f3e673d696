"""Filters over exchanges: ``api == Fetch && response.error_code != 0 && latency > 50ms``.

`parse` gives a text a meaning, `Capture.select` finds the rows that fit. Importing this imports lark, which takes a
tenth of a second: only who has a filter does.
"""

from dissector.analysis.filter.errors import FilterError
from dissector.analysis.filter.meaning import Filter, parse

__all__ = ["Filter", "FilterError", "parse"]

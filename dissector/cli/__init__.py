"""The command line.

Garbage collection is infrequent from the first import on: imports create objects that stay, and searching them for
cycles takes a tenth of the time of a small capture.
"""

import gc
from typing import Final

_COLLECT_AFTER: Final = 100_000
"""Objects between two collections; Python's default is 700."""

gc.set_threshold(_COLLECT_AFTER)

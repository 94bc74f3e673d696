"""The command line. What it imports is made of objects that stay: looking for cycles among them while they are made
is a tenth of what a small capture takes, so it is done more seldom from the first import on."""

import gc
from typing import Final

_COLLECT_AFTER: Final = 100_000
"""Objects between two collections; Python's own 700 is for programs that start slowly anyway."""

gc.set_threshold(_COLLECT_AFTER)

"""The kernel that `make sanitize` builds, with address and undefined-behavior sanitizers, for the installed one.

Whatever imports this runs with it if the variable names it. It is slow, and reserves terabytes of addresses.
"""

import os
from pathlib import Path
from typing import Final

from dissector.core import kernel

_PATH: Final = os.environ.get("INSTRUMENTED_KERNEL")
IS_USED: Final = _PATH is not None
if _PATH is not None:
    kernel.PATH = Path(_PATH)

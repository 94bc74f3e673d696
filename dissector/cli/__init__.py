"""The command line.

Garbage collection is infrequent from the first import on: imports create objects that stay, and searching them for
cycles takes a tenth of the time of a small capture.

An interrupt ends `kdissect live` and `proxy` at any moment, from here on: shells start what scripts run in the
background with interrupts ignored, and imports take longer than a script may wait. Once they capture, an interrupt ends
them in order.
"""

import gc
import signal
import sys

if sys.argv[1:2] in (["live"], ["proxy"]):
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from typing import Final

_COLLECT_AFTER: Final = 100_000
"""Objects between two collections; Python's default is 700."""

gc.set_threshold(_COLLECT_AFTER)

"""Clients and listeners that disagree on TLS, on stderr: commands that count exchanges or check rules show no row of
theirs."""

from collections import Counter
from itertools import islice
from typing import Final

import numpy as np

from dissector.capture_session import Capture
from dissector.cli.errors import print_error
from dissector.core.text import clean, counted
from dissector.index.exchange_table import RowKind

CODES: Final = ("tls-on-plain-port", "plain-on-tls-port")
MOST_ROWS: Final = 1_000
"""Rows that are looked at."""
MOST_LINES: Final = 5


def print_wrong_listeners(capture: Capture) -> None:
    """Print a line for each listener."""
    kinds = capture.index.kinds()
    others = np.flatnonzero(np.isin(kinds, (RowKind.TLS, RowKind.UNPARSED)))
    found: Counter[tuple[str, str]] = Counter()
    for exchange in capture.at(others[:MOST_ROWS]):
        for each in exchange.findings:
            found[exchange.row.server, each.message] += each.code in CODES
    for (server, message), count in islice((+found).items(), MOST_LINES):
        print_error(f"{clean(server)}, {counted(count, 'connection')}: {message}")

"""The processes of exported connections, which the copy keeps as a live capture's file does.

A redacted copy gets none: a process's name may say whose machine it is.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from dissector.capture.process_notes import ProcessNote
from dissector.capture_session import Capture


def process_notes(capture: Capture, rows: Sequence[int]) -> Iterator[ProcessNote]:
    """Yield a note for each end of the rows' connections whose process is known, as of the connection's beginning."""
    numbers = np.unique(capture.index.numbers(np.asarray(rows, np.int64)).connection)
    for connection in numbers.tolist():
        facts = capture.connections.facts(connection)
        begin_ns = capture.connections.first_time_ns(connection)
        if facts is None or begin_ns is None:
            continue
        client, server = capture.connections.ends(connection)
        for end, peer, process in ((client, server, facts.process), (server, client, facts.server_process)):
            if process is not None:
                yield ProcessNote(end, peer, begin_ns, process)

"""The TLS handshakes of connections that stay encrypted: what they say without a key."""

from typing import Final, NamedTuple

import numpy as np

from dissector.capture_session import Capture
from dissector.index.exchange_table import RowKind
from dissector.tls.session import TlsSession, TlsState

ROWS_AT_ONCE: Final = 1 << 16
MAX_HANDSHAKES: Final = 2_000
"""Connections whose handshakes are kept."""


class TlsHandshake(NamedTuple):
    """What is known of a connection that is not decrypted. Texts are as on the wire."""

    connection: int
    client: str
    """`host:port`, as `server`."""
    server: str
    session: TlsSession | None
    """None where no hello was captured."""
    alert: str
    """The alert that ended it, and who sent it; empty for none."""
    row: int | None
    """Its row, from 0; None where the capture has none, as nothing says that it may be Kafka."""

    @property
    def is_failed(self) -> bool:
        """Whether an alert ended it."""
        return bool(self.alert)


def tls_handshakes(capture: Capture) -> tuple[list[TlsHandshake], int]:
    """Return handshakes, failed ones first, then those with a row; and how many there are in all."""
    rows: dict[int, int] = {}
    for start in range(0, len(capture), ROWS_AT_ONCE):
        part = np.arange(start, min(start + ROWS_AT_ONCE, len(capture)), dtype=np.int64)
        found = capture.index.numbers(part)
        encrypted = found.kind == RowKind.TLS
        for connection, row in zip(found.connection[encrypted].tolist(), part[encrypted].tolist(), strict=True):
            rows.setdefault(connection, row)
    first = capture.rows.files + 1
    connections = capture.connections
    there = []
    for number in range(first, first + len(connections)):
        session = connections.tls(number)
        if number in rows or (session is not None and session.state is not TlsState.DECRYPTED and session.hello):
            there.append((not connections.tls_alert(number), rows.get(number) is None, number))
    handshakes = [
        TlsHandshake(
            number, *connections.ends(number), connections.tls(number), connections.tls_alert(number), rows.get(number)
        )
        for _, _, number in sorted(there)[:MAX_HANDSHAKES]
    ]
    return handshakes, len(there)

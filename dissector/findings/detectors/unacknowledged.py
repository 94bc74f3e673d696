"""Bytes that TCP sent again and again, and that the other end never acknowledged.

What is acknowledged later is a loss (`near-loss`), what a closed window holds back is none. A cause is named where
nothing contradicts it: a smaller MTU on the path if only segments larger than all that were acknowledged are lost; a
firewall or NAT that forgot the connection if it was idle before, and nothing came from the other end since. Where both
fit, both are named.
"""

from typing import ClassVar, Final

import numpy as np

from dissector.core.arrays import Bool
from dissector.core.columns import tuples
from dissector.core.finding import Severity
from dissector.core.text import counted, duration
from dissector.core.times import SECOND
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.contradictions import is_stuck
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.recurrence import BoundedStates
from dissector.index.exchange_table import NO_FRAME
from dissector.transport.deliveries import Delivery

FULL_SIZED: Final = 1_200
"""Bytes of a segment that a path may refuse for its size: IPv6 carries 1,220 everywhere, tunnels over IPv4 as much."""
IDLE_NS: Final = 60 * SECOND
"""Firewalls and NATs forget a connection after minutes, the hastiest after one."""
_DEVICE: Final = "a firewall, load balancer or NAT may"


class Unacknowledged(ConnectionDetector):
    """Finds the first message of a connection that was never acknowledged."""

    explanation: ClassVar = Explanation(
        "unacknowledged",
        "Never acknowledged",
        Severity.WARNING,
        "TCP sent bytes of this message again at least three times, for more than a second, and the capture has no "
        "acknowledgement of them. The message says how often, for how long, and what else the capture shows.",
        "If only full-sized segments are lost, and smaller ones were acknowledged: a tunnel or link on the path has a "
        "smaller MTU, and the ICMP messages that would say so are filtered. If the connection was idle before: a "
        "firewall, load balancer or NAT has forgotten it. Otherwise the other machine, or the network to it, is down.",
        "MTU: ping -M do -s 1472 from one end to the other; lower the interface's MTU or clamp the MSS. Idle: set "
        "connections.max.idle.ms of clients below the timeout of the device, or let TCP keep-alives run more often "
        "than that. Otherwise capture on the other end too, to see whether the segments arrive there.",
    )

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._reported: BoundedStates[int, list[int]] = BoundedStates(list)

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Report one finding for each connection, at the first message that waits."""
        waiting = rows.where(waits_for_acknowledgement(self.context, rows))
        for row, connection, response in tuples(waiting.row, waiting.connection, waiting.response):
            known = self._reported.of(connection)
            if known:
                continue
            known.append(row)
            is_request = response == NO_FRAME
            delivery = self.context.delivery(connection, of_client=is_request)
            if delivery is not None:
                self.report(row, words_about(delivery), "request" if is_request else "response")


def waits_for_acknowledgement(context: FindingContext, rows: ExaminedRows) -> Bool:
    """Return which rows have a request without a response, or a response, that the other end never acknowledged."""
    waits = np.zeros(len(rows.row), np.bool_)
    connections = context.stuck()
    if not len(connections):
        return waits
    for connection in np.intersect1d(connections, rows.connection).tolist():
        mine = rows.is_exchange & (rows.connection == connection)
        for of_client, frame, end_ns in (
            (True, rows.request, rows.request_ns + rows.request_transfer_ns),
            (False, rows.response, rows.response_ns + rows.response_transfer_ns),
        ):
            delivery = context.delivery(connection, of_client=of_client)
            if delivery is not None and is_stuck(delivery):
                waits |= (
                    mine & (frame != NO_FRAME) & (end_ns >= delivery.waiting_ns)
                    & ((rows.response == NO_FRAME) | (not of_client))
                )  # fmt: skip
    return waits


def words_about(delivery: Delivery) -> str:
    """Return what is said of bytes that were never acknowledged."""
    words = f"sent again {counted(delivery.retries, 'time')} within {duration(delivery.retry_ns - delivery.waiting_ns)}"
    words += " and never acknowledged"
    idle = duration(delivery.idle_ns)
    was_idle = delivery.idle_ns >= IDLE_NS and not delivery.heard
    if delivery.retry_size >= FULL_SIZED and 0 < delivery.largest_acked < delivery.retry_size:
        words += (
            f": a segment of {delivery.retry_size:,} bytes, while all that were acknowledged have at most "
            f"{delivery.largest_acked:,}: the path may have a smaller MTU"
        )
        if was_idle:
            words += f", or {_DEVICE} have forgotten the connection, which had been idle for {idle}"
        return words
    if delivery.heard:
        return f"{words}; the other end still sent {counted(delivery.heard, 'segment')}"
    if was_idle:
        return f"{words}, after the connection was idle for {idle}: {_DEVICE} have forgotten it"
    return f"{words}; nothing came from the other end since: it, or the network to it, may be down"

"""Whether the other end's TCP acknowledged what an end sent: what no broker received, it did not refuse or forget."""

from typing import Final

from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.recurrence import SECOND
from dissector.transport.deliveries import STUCK_RETRIES, Delivery

LEAST_NS: Final = SECOND
"""For how long bytes were sent again."""


def is_stuck(delivery: Delivery) -> bool:
    """Whether an end sent bytes again and again without an acknowledgement."""
    return (
        delivery.retries >= STUCK_RETRIES
        and delivery.waiting_ns > 0
        and delivery.retry_ns - delivery.waiting_ns >= LEAST_NS
        and not delivery.is_closed
    )


def request_is_stuck(context: FindingContext, connection: int) -> bool:
    """Whether requests of a connection were never acknowledged: `Unacknowledged` reports them."""
    sent = context.delivery(connection, of_client=True)
    return sent is not None and is_stuck(sent)


def acknowledged_words(context: FindingContext, connection: int) -> str:
    """What is to be said of requests without a response, if the broker's TCP has all of them; begins with a
    semicolon."""
    sent = context.delivery(connection, of_client=True)
    return "; TCP delivered it, so the broker did not answer" if sent is not None and sent.is_acked else ""

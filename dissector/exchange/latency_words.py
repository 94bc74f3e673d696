"""Where the time of an exchange went, in words: of one whose messages took time to arrive."""

from dissector.core.text import duration
from dissector.exchange.model import ExchangeRow


def latency_words(row: ExchangeRow) -> str:
    """Return ``1.0 ms until the response began, 40.0 ms to receive it``; empty where each message came at once, and
    where the parts are not known."""
    sending, wait, receiving = row.request_transfer_ns, row.wait_ns, row.response_transfer_ns
    if wait is None or not (sending or receiving):
        return ""
    words = [f"{duration(sending)} to send the request"] if sending else []
    words.append(f"{duration(wait)} until the response began")
    return ", ".join([*words, *([f"{duration(receiving)} to receive it"] if receiving else [])])

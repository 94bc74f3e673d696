"""What is wrong with the bytes of a message, so that its receiver can't read it."""

from typing import Final

from dissector.core.finding import Finding, Severity
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.masked_reasons import MALFORMED, TRAILING
from dissector.protocol.misplaced_tags import misplaced_tags

MISPLACED_TAG: Final = "misplaced-tag"


def faults(message: ExchangeMessage) -> list[Finding]:
    """Return the findings of a message that was captured in full, with paths in the message: it does not fit its
    layout, has bytes behind it, or tags outside their versions."""
    found = [each for each in message.decoded.findings if each.code in (MALFORMED, TRAILING)]
    for tag in misplaced_tags(message.layout, message.body):
        path = f"body.{tag.path}" if tag.path else "body"
        found.append(Finding(MISPLACED_TAG, Severity.ERROR, tag.words, path))
    return found

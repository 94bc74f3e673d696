"""Why the other side can't read a message: it does not fit its layout."""

from typing import Final

from dissector.core.finding import Finding, Severity
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.masked_reasons import MALFORMED, TRAILING
from dissector.protocol.misplaced_tags import misplaced_tags

MISPLACED_TAG: Final = "misplaced-tag"


def message_faults(message: ExchangeMessage) -> list[Finding]:
    """Return the findings of a message that was captured in full, with paths in the message: it does not fit its
    layout, has bytes behind it, or tags outside their versions."""
    found = [each for each in message.decoded.findings if each.code in (MALFORMED, TRAILING)]
    for tag in misplaced_tags(message.layout, message.body):
        path = f"body.{tag.path}" if tag.path else "body"
        found.append(Finding(MISPLACED_TAG, Severity.ERROR, tag.words, path))
    return found

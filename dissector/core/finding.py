"""A finding: one plain line about something odd or damaged, and its place.

Findings are values, never exceptions. `path` names a field of the exchange (``response.body.topics[0].error_code``),
or a part of it (``request``), or is empty for the exchange as a whole.
"""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How serious a finding is. The order is the same as in Wireshark's expert information.

    >>> [each.value for each in dissector.Severity]
    ['note', 'warning', 'error']
    """

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `code` is stable and can be filtered on; `message` is for people.

    >>> exchange, finding = next(capture.findings())
    >>> exchange.number, finding.code, finding.severity.value, finding.path
    (34, 'error-response', 'note', 'response.body')
    """

    code: str
    severity: Severity
    message: str
    path: str = ""

    def under(self, prefix: str) -> "Finding":
        """Return the same finding with a prefix to its path."""
        return Finding(self.code, self.severity, self.message, f"{prefix}.{self.path}" if self.path else prefix)

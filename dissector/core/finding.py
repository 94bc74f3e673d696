"""A finding: something legal but odd, or damaged, said in one plain line and tied to where it was seen.

Findings are values, never exceptions. `path` names a field of the exchange (``response.body.topics[0].error_code``),
or a part of it (``request``), or is empty for the exchange as a whole.
"""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a reader should care. The order is that of Wireshark's expert information."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing worth saying. `code` is stable and can be filtered on; `message` is for people."""

    code: str
    severity: Severity
    message: str
    path: str = ""

    def under(self, prefix: str) -> "Finding":
        """The same finding, its path seen from one level further up."""
        return Finding(self.code, self.severity, self.message, f"{prefix}.{self.path}" if self.path else prefix)

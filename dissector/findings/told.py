"""What a row tells, as a value: many rows tell the same, and a column has a number for it."""

from typing import Final, NamedTuple, Self

from dissector.core.finding import Finding, Severity

SEVERITIES: Final = tuple(Severity)
NO_SEVERITY: Final = -1


class Told(NamedTuple):
    """The codes of a row's findings, the gravest severity, and its errors."""

    codes: frozenset[str] = frozenset()
    severity: int = NO_SEVERITY
    """From 0 for a note; `NO_SEVERITY` without findings."""
    errors: frozenset[object] = frozenset()
    """As a filter has them: 0 where a response that could have one has none."""

    def more(self, finding: Finding) -> Self:
        """The same with one more finding."""
        severity = max(self.severity, SEVERITIES.index(finding.severity))
        return self._replace(codes=self.codes | {finding.code}, severity=severity)


NOTHING: Final = Told()

"""The findings of a row as a value. Many rows have equal ones, so a column stores a number for each value."""

from typing import Final, NamedTuple, Self

from dissector.core.finding import Finding, Severity

SEVERITIES: Final = tuple(Severity)
NO_SEVERITY: Final = -1


class FindingKind(NamedTuple):
    """What a finding is, whatever its words and its place."""

    code: str
    severity: Severity


class FindingSummary(NamedTuple):
    """The codes of a row's findings, the gravest severity, and the row's errors."""

    codes: frozenset[str] = frozenset()
    severity: int = NO_SEVERITY
    """From 0 for a note; `NO_SEVERITY` without findings."""
    errors: frozenset[object] = frozenset()
    """As a filter has them: 0 where a response that could have one has none."""
    kinds: tuple[FindingKind, ...] = ()
    """Of each finding, sorted, where these are few: those of a message alone."""

    def with_finding(self, finding: Finding) -> Self:
        """The same with one more finding."""
        severity = max(self.severity, SEVERITIES.index(finding.severity))
        return self._replace(codes=self.codes | {finding.code}, severity=severity)


NO_FINDINGS: Final = FindingSummary()
UNKNOWN: Final = FindingSummary(frozenset(("",)))
"""That of a row whose findings are not known: no row has it."""

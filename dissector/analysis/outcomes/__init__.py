"""Outcomes of rules that a capture is held to, and the forms in which other programs read them: JUnit, SARIF."""

from dissector.analysis.outcomes.junit import junit
from dissector.analysis.outcomes.outcome import RuleOutcome, RuleStatus
from dissector.analysis.outcomes.sarif import sarif

__all__ = ["RuleOutcome", "RuleStatus", "junit", "sarif"]

"""Conformance: rules of the protocol, each with its source, and captures held to them."""

from dissector.analysis.conformance.check import Breach, CheckResult, check
from dissector.analysis.conformance.rule import ProtocolRule, RuleSide, Verdict
from dissector.analysis.conformance.rules import RULES

__all__ = ["RULES", "Breach", "CheckResult", "ProtocolRule", "RuleSide", "Verdict", "check"]

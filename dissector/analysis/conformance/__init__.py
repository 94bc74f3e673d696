"""Conformance: rules of the protocol, each with its source, and captures held to them."""

from dissector.analysis.conformance.check import Breach, CheckResult, check
from dissector.analysis.conformance.rule import ProtocolRule, RuleSide, Verdict
from dissector.analysis.conformance.rules import RULES, a_rule

__all__ = ["RULES", "Breach", "CheckResult", "ProtocolRule", "RuleSide", "Verdict", "a_rule", "check"]

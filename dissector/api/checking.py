"""The rules of the protocol, as programs check them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dissector.analysis.conformance import RULES, CheckResult
from dissector.analysis.conformance import check as check_captures

if TYPE_CHECKING:
    from dissector.capture_session import Capture as Session


def check(session: "Session", ignore: Iterable[str]) -> CheckResult:
    """Hold a capture that has been read to all rules but those to ignore. Raises `ValueError` for an unknown code."""
    ignored = {ignore} if isinstance(ignore, str) else set(ignore)
    for code in sorted(ignored - {rule.code for rule in RULES}):
        raise ValueError(f"{code!r} is no rule: kdissect check --rules lists them")
    rules = [rule for rule in RULES if rule.code not in ignored]
    return check_captures([(", ".join(session.names), session)], rules)

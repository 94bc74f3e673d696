"""Cross-message findings, and explanations of the codes of all findings.

`Capture.examine` finds them; `explain` has the plain words.
"""

from typing import Final

from dissector.findings.explanation import Explanation
from dissector.findings.explanations import EXPLANATIONS
from dissector.findings.registry import DETECTORS

__all__ = ["CODES", "Explanation", "explain"]

_EXPLANATIONS: Final = {each.code: each for each in (*(detector.explanation for detector in DETECTORS), *EXPLANATIONS)}
CODES: Final = tuple(sorted(_EXPLANATIONS))
"""All codes that a finding can have."""


def explain(code: str) -> Explanation | None:
    """Return the explanation of a code; None if there is no such code."""
    return _EXPLANATIONS.get(code)

"""The codes of all findings, with their explanations in plain words."""

from typing import Final

from dissector.findings.explanation import Explanation
from dissector.findings.explanations import EXPLANATIONS
from dissector.findings.registry import DETECTORS

_EXPLANATIONS: Final = {each.code: each for each in (*(detector.explanation for detector in DETECTORS), *EXPLANATIONS)}
CODES: Final = tuple(sorted(_EXPLANATIONS))
"""All codes that a finding can have."""


def explain(code: str) -> Explanation | None:
    """Return the explanation of a code; None if there is no such code."""
    return _EXPLANATIONS.get(code)

"""The info column of a row with findings: their codes in brackets, what the first says, the row's words.

`marked` puts the codes in front; what a finding says is added where the row is shown (`with_words`).
"""

import re
from collections.abc import Sequence
from typing import Final

from dissector.core.finding import Finding, Severity

_MARK: Final = re.compile(r"\[([a-z0-9-]+)\](?: |$)")


def marked(words: str, findings: Sequence[Finding]) -> str:
    """Return the words of a row behind the codes of findings, each once."""
    marks = " ".join(f"[{code}]" for code in dict.fromkeys(each.code for each in findings))
    return " ".join(filter(None, (marks, words)))


def with_words(marked_info: str, findings: Sequence[Finding]) -> str:
    """Return a marked info column with what its first error says, which is what to change. Words like "no response",
    which another finding has, give way to what the first says of any severity. `findings` are all of the row."""
    codes, words = _split(marked_info, {each.code for each in findings})
    is_only_finding = any(words == each.message for each in findings if each.code not in codes)
    shown = (
        each.message
        for code in codes
        for each in findings
        if each.code == code and (is_only_finding or each.severity is Severity.ERROR)
    )
    first = next(shown, "")
    marks = " ".join(f"[{code}]" for code in codes)
    rest = " · ".join(filter(None, (first, "" if is_only_finding and first else words)))
    return " ".join(filter(None, (marks, rest)))


def _split(marked_info: str, known: set[str]) -> tuple[list[str], str]:
    """Return the codes at the beginning, and the words behind them."""
    codes: list[str] = []
    at = 0
    while (mark := _MARK.match(marked_info, at)) and mark.group(1) in known:
        codes.append(mark.group(1))
        at = mark.end()
    return codes, marked_info[at:]

"""The info column of a row with findings: the broker's errors, codes of findings in brackets, what the first says, the
row's words.

`marked` puts the codes in front of a row's own words; the order and what a finding says are those of `with_words`,
where the row is shown:

    UNKNOWN_TOPIC_OR_PARTITION [error-storm] · orders[0]
    [near-loss] [slow] orders[0]

Causes come before what came of them, and errors before warnings, so that a narrow column has what is to be mended.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from dissector.core.finding import Finding, Severity

ERROR_RESPONSE: Final = "error-response"
"""The code of the finding that a response has an error code."""
CONSEQUENCES: Final = frozenset(
    (
        "closed-in-flight", "consumer-lag", "error-storm", "everyday-error-again", "metadata-storm", "rebalance-loop",
        "reconnect-storm", "slow", "unanswered",
    )
)  # fmt: skip
"""Codes that say what came of something; another code of the row says of what."""
_MARK: Final = re.compile(r"\[([a-z0-9-]+)\](?: |$)")
_SEVERITIES: Final = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
_BETWEEN: Final = " · "


def marked(words: str, findings: Sequence[Finding]) -> str:
    """Return the words of a row behind the codes of findings, each once."""
    return " ".join(filter(None, (_marks(dict.fromkeys(each.code for each in findings)), words)))


def without_advice(finding: Finding) -> str:
    """Return an error's finding without its advice: a list has little room."""
    return finding.message.partition(": ")[0]


def error_names(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return the names of the errors among a row's findings; of a login's error also the advice, as nothing works
    before it is followed."""
    errors = (each for each in findings if each.code == ERROR_RESPONSE)
    return tuple(each.message if "SASL" in (name := without_advice(each)) else name for each in errors)


def error_words(findings: Sequence[Finding]) -> str:
    """Return the names of the errors among a row's findings as the info column begins with them."""
    return _BETWEEN.join(error_names(findings))


def with_words(marked_info: str, findings: Sequence[Finding]) -> str:
    """Return a marked info column in the order of this module, with what its first error says, which is what to change.
    Words like "no response", which another finding has, give way to what the first says of any severity. `findings` are
    all of the row."""
    codes, words = _split(marked_info, {each.code for each in findings})
    if not codes:
        return words
    found = sorted((each for each in findings if each.code in codes), key=_rank)
    errors = error_words(findings)
    begins = bool(errors) and words.startswith(errors) and words[len(errors) :][: len(_BETWEEN)] in ("", _BETWEEN)
    own = words[len(errors) :].removeprefix(_BETWEEN) if begins else words
    others = {each.message for each in findings if each.code not in codes}
    is_only_finding = own in others
    first = next((each for each in found if is_only_finding or each.severity is Severity.ERROR), None)
    said = first.message if first is not None else ""
    if begins:
        said = said.removeprefix(f"{errors}: ")
    if said:
        own = _BETWEEN.join(part for part in own.split(_BETWEEN) if part not in others)
    said = "" if said in own else said
    head = " ".join(filter(None, (errors if begins else "", _marks(dict.fromkeys(each.code for each in found)))))
    rest = _BETWEEN.join(filter(None, (said, own)))
    return (_BETWEEN if begins and not said and rest else " ").join(filter(None, (head, rest)))


def heading_sizes(info: str, findings: Sequence[Finding]) -> tuple[int, int]:
    """Return how many characters at the beginning of an info column are names of errors and codes of findings, and how
    many with what a finding says behind them."""
    errors = error_words(findings)
    at = len(errors) if errors and info.startswith(errors) else 0
    known = {each.code for each in findings}
    start = at + (info[at : at + 1] == " ")
    while (mark := _MARK.match(info, start)) and mark.group(1) in known:
        at = start = mark.end()
    said = (len(each) for each in _said(findings) if info.startswith(each, start))
    return at, start + max(said, default=at - start)


def _said(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield what may stand behind the codes: of an error's name that stands before them only what follows."""
    errors = error_words(findings)
    for each in findings:
        yield each.message
        if errors and each.message.startswith(f"{errors}: "):
            yield each.message.removeprefix(f"{errors}: ")


def _rank(finding: Finding) -> tuple[bool, int]:
    return finding.code in CONSEQUENCES, _SEVERITIES.index(finding.severity)


def _marks(codes: dict[str, None]) -> str:
    return " ".join(f"[{code}]" for code in codes)


def _split(marked_info: str, known: set[str]) -> tuple[list[str], str]:
    """Return the codes at the beginning, and the words behind them."""
    codes: list[str] = []
    at = 0
    while (mark := _MARK.match(marked_info, at)) and mark.group(1) in known:
        codes.append(mark.group(1))
        at = mark.end()
    return codes, marked_info[at:]

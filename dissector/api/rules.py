"""Captures held to rules, as programs do it: to those of the protocol, and to a baseline of what a client does."""

from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from dissector.analysis.baseline import choices, hold, no_line, observe, read_baseline, write_baseline
from dissector.analysis.conformance import RULES, CheckResult, a_rule
from dissector.analysis.conformance import check as check_captures
from dissector.analysis.diff import DiffSide
from dissector.analysis.diff.side_profile import SideProfile
from dissector.analysis.outcomes import RuleOutcome

if TYPE_CHECKING:
    from dissector.capture_session import Capture as Session


def baseline_of(session: "Session") -> str:
    """Return the text of a baseline of a capture that has been read."""
    return write_baseline(observe(_profile(session))[0])


def held_to(
    session: "Session", path: str | PathLike[str], fail_on: Iterable[str], ignore: Iterable[str]
) -> list[RuleOutcome]:
    """Return what became of each line of a baseline. Raises `ValueError` for names that no baseline has, and for a text
    that is no baseline."""
    __tracebackhide__ = True
    chosen = []
    for words in (fail_on, ignore):
        found, unknown = choices([words] if isinstance(words, str) else list(words))
        if unknown:
            raise ValueError(no_line(unknown[0]))
        chosen.append(found)
    try:
        text = Path(path).read_text("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{fspath(path)} is not a baseline: it is not text") from None
    baseline, lines = read_baseline(text)
    return hold(_profile(session), baseline, lines, file=fspath(path), fail_on=chosen[0], ignored=chosen[1])


def _profile(session: "Session") -> SideProfile:
    return SideProfile(DiffSide(session, PurePath(session.names[0]).stem), {}, {})


def check(session: "Session", ignore: Iterable[str]) -> CheckResult:
    """Hold a capture that has been read to all rules but those to ignore. Raises `ValueError` for an unknown code."""
    if not isinstance(ignore, Iterable):
        raise TypeError(f"check(ignore={ignore!r}): give codes of rules, such as ['throttle-time']")
    ignored = {ignore} if isinstance(ignore, str) else set(ignore)
    for code in sorted(ignored - {rule.code for rule in RULES}):
        raise ValueError(f"{code!r} is not {a_rule(code)}")
    rules = [rule for rule in RULES if rule.code not in ignored]
    return check_captures([(", ".join(session.names), session)], rules)

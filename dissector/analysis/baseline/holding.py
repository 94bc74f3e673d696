"""Hold what a client does to its baseline."""

from collections.abc import Collection, Iterator
from typing import Final

from dissector.analysis.baseline.baseline import SETTINGS, TIMES, Baseline, observe
from dissector.analysis.diff.behavior import NOTHING, ON_LEAVING, SHUTDOWN
from dissector.analysis.diff.captured_span import CapturedSpan, may_lack
from dissector.analysis.diff.connection_roles import CLIENT_ID
from dissector.analysis.diff.frequency_comparison import MIN_INTERVAL_DIFFERENCE_NS
from dissector.analysis.diff.side_profile import SideProfile
from dissector.analysis.outcomes import RuleOutcome, RuleStatus
from dissector.core.suggestions import did_you_mean
from dissector.core.text import duration
from dissector.protocol.schema.loader import apis

TOLERANCE: Final = 1.6
"""Times within this factor are equal: clients vary back-offs by a fifth, and machines are busy."""
NOT_REQUESTED: Final = "not requested"
SOFTWARE: Final = "client.software"
"""The rule that an upgrade breaks: whoever upgrades wants to know what else changes, so it counts only on demand."""
CAPTURED: Final = "client.connections"
"""The line that says what of the connections was not captured."""
MAY_LACK: Final = "the capture may lack it"
NOT_YET: Final = frozenset((NOTHING, "no", "none", ""))
"""What a behavior is before its first request."""
ON_OCCASION: Final = frozenset(("ListOffsets", "OffsetForLeaderEpoch"))
"""APIs that a client requests where something happened: a partition has no committed offset, or has one of a leader's
epoch (KIP-320), which a consumer that joins its group again may find."""
_TABLES: Final = ("client", "versions", "settings", "times")
_SINGULAR: Final = {"version": "versions", "setting": "settings", "time": "times", "retries": "times.retry back-off"}

Verdict = tuple[str, RuleStatus, str, str]
"""The rule, its status, what is to say of it, and the API that shows it."""


def choices(words: Collection[str]) -> tuple[frozenset[str], list[str]]:
    """Return the rules that words name: a table (``version``), an entry (``acks``, ``Fetch``) or both
    (``versions.Fetch``); and the words that name none."""
    known = _rules()
    found, unknown = set[str](), []
    for word in words:
        wanted = _SINGULAR.get(word.lower(), word).lower()
        named = {rule for rule in known if wanted in (rule.lower(), *_names(rule))}
        if wanted in _TABLES:
            named.add(wanted)
        if not named:
            unknown.append(word)
        found |= named
    return frozenset(found), unknown


def no_line(word: str) -> str:
    """Return what a word is not that names no rule, with names that are similar."""
    names = [name for rule in _rules() for name in _names(rule)]
    near = did_you_mean(word, names) or "; try version, setting, retries, acks, or an API"
    return f"{word!r} is not a line of a baseline{near}"


def _rules() -> list[str]:
    return [
        *(f"versions.{each.name}" for each in apis()), *(f"settings.{each}" for each in SETTINGS),
        *(f"times.{each}" for each in TIMES), SOFTWARE,
    ]  # fmt: skip


def _names(rule: str) -> tuple[str, str]:
    """Return the name of an entry, with its unit and without: ``fetch max wait (ms)``, ``fetch max wait``."""
    name = rule.partition(".")[2].lower()
    return name, name.removesuffix(" (ms)")


def count_checks(baseline: Baseline) -> int:
    """Return how many lines of a baseline captures are held to."""
    lines = len(baseline.versions) + len(baseline.settings) + len(baseline.times)
    return lines + _is_named(baseline.software)


def hold(
    profile: SideProfile, baseline: Baseline, lines: dict[str, int], *, file: str,
    fail_on: Collection[str] = (), ignored: Collection[str] = (),
) -> list[RuleOutcome]:  # fmt: skip
    """Return what became of each entry of a baseline; and of APIs that it does not have, if it has versions.

    `fail_on` and `ignored` are from `choices`; without `fail_on` every difference counts but that of the software.
    `file` and `lines` are those of the baseline."""
    seen, first = observe(profile)
    outcomes = []
    for rule, status, message, api in _compared(baseline, seen, profile.span):
        table = rule.partition(".")[0]
        if rule in ignored or table in ignored:
            continue
        is_demanded = bool({rule, table} & set(fail_on))
        if status is RuleStatus.BROKEN and not is_demanded and (fail_on or rule == SOFTWARE):
            status = RuleStatus.ALLOWED
        outcomes.append(RuleOutcome(rule, status, message, file, lines.get(rule), first.get(api)))
    return outcomes


def _compared(baseline: Baseline, seen: Baseline, span: CapturedSpan) -> Iterator[Verdict]:
    """Yield the verdicts on all lines. What a capture may lack is not seen: the one that the baseline is of, and this
    one."""
    for lacks, whose in zip((baseline.lacks, seen.lacks), ("the baseline's capture", "the capture"), strict=True):
        if lacks:
            yield CAPTURED, RuleStatus.NOT_SEEN, f"{whose} lacks {lacks}: what it may not show does not count", ""
    if _is_named(baseline.software):
        yield SOFTWARE, *_software_verdict(baseline.software, seen.software), "ApiVersions"
    yield from _compared_versions(baseline, seen, span)
    yield from _compared_settings(baseline, seen)
    yield from _compared_times(baseline, seen)


def _compared_versions(baseline: Baseline, seen: Baseline, span: CapturedSpan) -> Iterator[Verdict]:
    both = baseline.lacks, seen.lacks
    names = sorted(baseline.versions.keys() | seen.versions.keys()) if baseline.versions else ()
    for api in names:
        before, after = (each.versions.get(api, NOT_REQUESTED) for each in (baseline, seen))
        if api in ON_OCCASION and NOT_REQUESTED in (before, after):
            yield f"versions.{api}", RuleStatus.NOT_SEEN, f"{before} → {after}; not requested in every run", api
        elif (after == NOT_REQUESTED and may_lack(api, span)) or (before == NOT_REQUESTED and baseline.lacks):
            yield f"versions.{api}", RuleStatus.NOT_SEEN, f"{before} → {after}; {MAY_LACK}", api
        else:
            yield f"versions.{api}", *_verdict(before, after, both), api


def _compared_settings(baseline: Baseline, seen: Baseline) -> Iterator[Verdict]:
    both = baseline.lacks, seen.lacks
    for name, before in baseline.settings.items():
        apis = [api for api in SETTINGS[name] if api in seen.versions]
        api = apis[0] if apis else ""
        after = seen.settings.get(name, NOTHING)
        sides = zip(both, (before, after), strict=True)
        if (SETTINGS[name] and not apis) or (name == ON_LEAVING and after == NOTHING):
            yield f"settings.{name}", RuleStatus.NOT_SEEN, f"{before}; no request shows it", api
        elif before != after and any(lacks and _shows_little(name, text) for lacks, text in sides):
            yield f"settings.{name}", RuleStatus.NOT_SEEN, f"{before} → {after}; {MAY_LACK}", api
        else:
            yield f"settings.{name}", *_verdict(before, after, both), api


def _compared_times(baseline: Baseline, seen: Baseline) -> Iterator[Verdict]:
    for name, before_ns in baseline.times.items():
        after_ns = seen.times.get(name)
        api = next((each for each in TIMES[name] if each in seen.versions), "")
        if after_ns is None:
            yield f"times.{name}", RuleStatus.NOT_SEEN, f"{duration(before_ns)}; the capture shows none", api
        elif is_same_time(before_ns, after_ns):
            yield f"times.{name}", RuleStatus.HELD, f"{duration(before_ns)} (now {duration(after_ns)})", api
        else:
            yield f"times.{name}", *_verdict(duration(before_ns), duration(after_ns)), api


def _shows_little(name: str, text: str) -> bool:
    """Return whether a behavior may be another one in what a capture lacks: how a client ends, and what it never did
    until then."""
    return name == SHUTDOWN or text in NOT_YET


def is_same_time(before_ns: int, after_ns: int) -> bool:
    """Return whether two times are equal, but for what clients and machines vary."""
    is_noise = abs(after_ns - before_ns) <= MIN_INTERVAL_DIFFERENCE_NS
    return is_noise or before_ns / TOLERANCE <= after_ns <= before_ns * TOLERANCE


def _is_named(software: str) -> bool:
    """Return whether a client says what it is: client ids in its place are those of a run."""
    return bool(software) and not software.startswith((CLIENT_ID, NOTHING))


def _software_verdict(before: str, after: str) -> tuple[RuleStatus, str]:
    if not _is_named(after):
        return RuleStatus.NOT_SEEN, f"{before}; no request names it"
    return _verdict(before, before if set(before.split(", ")) == set(after.split(", ")) else after)


def _verdict(before: str, after: str, lacks: tuple[str, str] = ("", "")) -> tuple[RuleStatus, str]:
    """Return the verdict on two lists of values; one that lacks some of the capture may have fewer of them."""
    values = [set(text.split(", ")) for text in (before, after)]
    is_less = (lacks[0] and values[0] < values[1]) or (lacks[1] and values[1] < values[0])
    is_same = before == after or bool(is_less)
    return (RuleStatus.HELD, before) if is_same else (RuleStatus.BROKEN, f"{before} → {after}")

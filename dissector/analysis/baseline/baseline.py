"""What a client does every time it is recorded: versions, settings, and times that are a setting's.

What depends on one run (counts, names, latencies, which errors brokers had) is not in it.
"""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dissector.analysis.diff.batching import MIN_BATCHES
from dissector.analysis.diff.behavior import BEHAVIORS, NOTHING
from dissector.analysis.diff.captured_span import lacking
from dissector.analysis.diff.frequency_comparison import are_backoffs
from dissector.analysis.diff.kept_numbers import median_of
from dissector.analysis.diff.matching_keys import GROUP_PROTOCOLS
from dissector.analysis.diff.produce_pace import linger_ns
from dissector.analysis.diff.side_profile import SideProfile
from dissector.core.text import clean

SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {
    name: each.shown_by for name, each in BEHAVIORS.items() if each.shown_by is not None
}
"""Behaviors of the matrix that are the same in each recording, and the APIs that show them; none for all."""
IN_ORDER: Final = {"assignors"}
"""Behaviors whose values have an order that counts."""
HEARTBEATS: Final = ("Heartbeat", *GROUP_PROTOCOLS)
BY_METADATA: Final = frozenset(("ListOffsets", "OffsetForLeaderEpoch"))
"""APIs whose requests are sent again as soon as metadata names another leader, and so after no back-off."""
BACK_OFF, INTERVAL, LINGER = "retry back-off", "heartbeat interval", "linger"
TIMES: Final[Mapping[str, tuple[str, ...]]] = {BACK_OFF: (), INTERVAL: HEARTBEATS, LINGER: ("Produce",)}
"""Times that are a setting's, and the APIs that show them; none for all."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Texts by name, as the matrix of `kdissect diff` has them; times in nanoseconds by name."""

    software: str
    """What the client says that it is; the client ids of one that does not say it."""
    versions: Mapping[str, str]
    """``v18``, or several, by API."""
    settings: Mapping[str, str]
    times: Mapping[str, int]
    """The shortest back-off of retries, the median interval of heartbeats, the median linger of a producer."""
    lacks: str = ""
    """What of the client's connections was not captured; empty for a capture that has all from start to end."""


def observe(profile: SideProfile) -> tuple[Baseline, dict[str, int]]:
    """Return what one side does; and for each API the number of its first exchange, from 1."""
    first: dict[str, int] = {}
    for key, each in profile.keys.items():
        first[key.api] = min(first.get(key.api, each.rows[0] + 1), each.rows[0] + 1)
    versions = profile.versions
    settings = {name: _values(name, BEHAVIORS[name].describe(profile)) for name in SETTINGS}
    return Baseline(
        software=clean(BEHAVIORS["software"].describe(profile)),
        versions={clean(api): ", ".join(f"v{n}" for n in sorted(versions[api])) for api in sorted(versions)},
        settings={name: text for name, text in settings.items() if text != NOTHING},
        times=_times(profile),
        lacks=lacking(profile.span),
    ), first


def _values(name: str, text: str) -> str:
    """Return the values of a behavior in an order that does not depend on how often each was sent."""
    return clean(text if name in IN_ORDER else ", ".join(sorted(text.split(", "))))


def _times(profile: SideProfile) -> dict[str, int]:
    pauses_ns = [each.retries.backoffs_ns for key, each in profile.keys.items() if key.api not in BY_METADATA]
    backoffs_ns = [each for of_key in pauses_ns if are_backoffs(of_key) for each in of_key]
    heartbeats = (each for key, each in profile.keys.items() if key.api in HEARTBEATS and not key.step)
    intervals_ns = array("q", [ns for each in heartbeats for ns in each.intervals_ns])
    times = {}
    if backoffs_ns:
        times[BACK_OFF] = min(backoffs_ns)
    if intervals_ns:
        times[INTERVAL] = round(median_of(intervals_ns))
    median_ns = linger_ns(profile, MIN_BATCHES)
    if median_ns is not None:
        times[LINGER] = median_ns
    return times

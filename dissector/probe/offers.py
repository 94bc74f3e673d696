"""A broker's advertised versions beside ours, API by API, and the release of Kafka that they resemble most."""

from collections.abc import Mapping
from typing import NamedTuple

from dissector.protocol.explain.releases import known_releases
from dissector.protocol.schema.loader import api, apis, request
from dissector.protocol.schema.model import Api, Versions

VersionsByApi = Mapping[int, Versions]


class ApiComparison(NamedTuple):
    """An API: the broker's versions, our versions, and a note."""

    key: int
    name: str
    broker: Versions | None
    ours: Versions | None
    note: str


class ReleaseGuess(NamedTuple):
    """The most similar releases: `same` of the `of` advertised APIs have the newest versions of these."""

    releases: tuple[str, ...]
    same: int
    of: int


def compare(offer: VersionsByApi) -> list[ApiComparison]:
    """Compare every API that the broker or we have, by key."""
    lines = []
    for key in sorted(offer.keys() | {each.key for each in apis()}):
        known, theirs = api(key), offer.get(key)
        name = known.name if known else "(unknown)"
        ours = known.versions if known else None
        lines.append(ApiComparison(key, name, theirs, ours, _note(known, theirs)))
    return lines


def _note(known: Api | None, theirs: Versions | None) -> str:
    if known is None:
        return "newer than us: no table has it"
    if theirs is None:
        return _absent(known)
    if not theirs:
        return "no range of versions"
    words = []
    if theirs.high > known.versions.high:
        words.append(f"newer than us: v{known.versions.high + 1} and up")
    elif theirs.high < known.versions.high:
        words.append("we are newer")
    if theirs.low > known.versions.low:
        words.append(f"removed: below v{theirs.low}")
    if known.unstable_versions and theirs.contains(known.unstable_versions.low):
        words.append(f"unstable: v{known.unstable_versions}")
    return ", ".join(words)


def _absent(known: Api) -> str:
    if "broker" not in request(known.key).listeners:
        return "not offered: among brokers and controllers only"
    if known.deprecated_versions == known.versions:
        return "removed"
    return "not offered"


def guess_release(offer: VersionsByApi) -> ReleaseGuess:
    """The releases whose newest versions are the offered ones for most APIs; of those alike, all.

    What is not offered says little: brokers leave out what is not set up (telemetry), listeners what is not theirs.
    """
    same = {label: _same(offer, label) for label in known_releases()}
    best = max(same.values())
    return ReleaseGuess(tuple(label for label, count in same.items() if count == best), best, len(offer))


def _same(offer: VersionsByApi, label: str) -> int:
    """How many of the offered APIs have the newest version that a release has."""
    count = 0
    for key, theirs in offer.items():
        schema = request(key) if api(key) else None
        released = schema.releases.get(label) if schema else None
        if schema and released:
            # A broker does not offer a version that may still change.
            count += theirs.high in (released.high, released.high - bool(schema.unstable_versions))
    return count

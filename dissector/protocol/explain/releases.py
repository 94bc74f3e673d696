"""The releases of Kafka that the tables were made from, and those that have a version of a message."""

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

from dissector.protocol.schema.imported import labels
from dissector.protocol.schema.loader import message
from dissector.protocol.schema.model import MessageSchema


@cache
def known_releases() -> tuple[str, ...]:
    """Return all releases, oldest first: those of ApiVersions, which all of Apache have, and imported ones."""
    return tuple(sorted({*message("ApiVersionsRequest").releases, *labels()}, key=release_order))


def release_order(label: str) -> tuple[tuple[bool, int, str], ...]:
    """Return a sort key of releases: ``3.10`` is after ``3.9``."""
    parts = re.findall(r"\d+|[a-zA-Z]+", label)
    return tuple((part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)


def released_in(found: MessageSchema, version: int) -> str:
    """Return the known releases with a version, neighbors as a span: ``3.7.2 to 3.9.2``. A version that the oldest of
    them has may be older."""
    labels = [label for label, versions in found.releases.items() if versions.contains(version)]
    oldest = known_releases()[0]
    return spans(labels).replace(oldest, f"{oldest} or older", 1) if oldest in labels else spans(labels)


def spans(labels: Iterable[str]) -> str:
    """Return releases as text, runs of neighbors among the known ones as spans."""
    having = set(labels)
    runs: list[list[str]] = [[]]
    for label in known_releases():
        if label in having:
            runs[-1].append(label)
        elif runs[-1]:
            runs.append([])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs if run)


class Removal(NamedTuple):
    """A version that newer releases no longer have."""

    release: str
    """The oldest known major release without it."""
    low: int
    """The oldest version that this release has."""


@lru_cache(maxsize=1024)
def removal(name: str, version: int) -> Removal | None:
    """Return which known release removed a version of a message; None if the newest one has it, or none ever had."""
    having = message(name).releases
    older = [label for label in having if having[label].contains(version)]
    newer = [label for label in having if having[label].low > version]
    if not older or not newer:
        return None
    first = min(newer, key=release_order)
    return Removal(first.partition(".")[0], having[first].low)

"""Which releases of Kafka the tables were made from, and which of them has a version of a message."""

import re
from collections.abc import Iterable
from functools import cache

from dissector.protocol.schema.imported import labels
from dissector.protocol.schema.loader import message
from dissector.protocol.schema.model import MessageSchema


@cache
def known_releases() -> tuple[str, ...]:
    """All releases, oldest first: those that have ApiVersions, as every one of Apache's does, and those imported."""
    return tuple(sorted({*message("ApiVersionsRequest").releases, *labels()}, key=release_order))


def release_order(label: str) -> tuple[tuple[bool, int, str], ...]:
    """A key to sort releases by: ``3.10`` stands after ``3.9``."""
    parts = re.findall(r"\d+|[a-zA-Z]+", label)
    return tuple((part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)


def released_in(found: MessageSchema, version: int) -> str:
    """The known releases that have a version, neighbours as a span: ``3.6.2 to 3.9.2``."""
    return spans(label for label, versions in found.releases.items() if versions.contains(version))


def spans(labels: Iterable[str]) -> str:
    """Releases in words, runs of neighbours among the known ones as one span."""
    having = set(labels)
    runs: list[list[str]] = [[]]
    for label in known_releases():
        if label in having:
            runs[-1].append(label)
        elif runs[-1]:
            runs.append([])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs if run)

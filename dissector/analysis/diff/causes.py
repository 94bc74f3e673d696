"""What follows from something else that differs: told with its cause and not as a cause of its own."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from dissector.analysis.diff.comparison import Entry

Field = tuple[str, str, str]
"""API, part and path."""
CONSEQUENCES: Final[dict[Field, tuple[Field, ...]]] = {
    ("Fetch", "request", "session_epoch"): (
        ("Fetch", "request", "session_id"),
        ("Fetch", "request", "topics"),
        ("Fetch", "request", "forgotten_topics_data"),
        ("Fetch", "response", "session_id"),
        ("Fetch", "response", "responses"),
    ),
    ("InitProducerId", "", ""): (("Produce", "request", "topic_data.partition_data.records.producer_id"),),
    ("ApiVersions", "", "version"): (("ApiVersions", "response", "supported_features"),),
}
"""By cause: an incremental Fetch names only what changed (KIP-227); only idempotent producers have an id (KIP-98); a
broker leaves features from old clients out that they could not read (KIP-1022)."""


ECHOES: Final = (
    ("JoinGroup", "protocols.metadata.", "members.metadata."),
    ("SyncGroup", "assignments.assignment.", "assignment."),
)
"""What a coordinator hands on from a request into a response."""


def folded(entries: Iterable[Entry]) -> list[Entry]:
    """The entries without those that follow from another, which then says so."""
    found = list(entries)
    there = {(entry.api, entry.part, entry.path) for entry in found}
    follow: dict[Field, list[str]] = {}
    gone: set[Field] = set()
    echoes = {
        (api, "request", asked + name): ((api, "response", answered + name),)
        for api, asked, answered in ECHOES
        for _, _, path in there
        for name in [path.removeprefix(asked)]
    }
    for cause, fields in (CONSEQUENCES | echoes).items():
        if cause in there and (with_it := [field for field in fields if field in there]):
            follow[cause] = [" ".join(filter(None, (field[1], field[2]))) for field in with_it]
            gone.update(with_it)
    return [
        _with(entry, follow.get((entry.api, entry.part, entry.path), []))
        for entry in found
        if (entry.api, entry.part, entry.path) not in gone
    ]


def _with(entry: Entry, following: list[str]) -> Entry:
    words = f"and with it {', '.join(following)}" if following else ""
    return replace(entry, words="; ".join(filter(None, (entry.words, words))))

"""What the partitions of one capture learn from each other: names, advertised versions, how often what is requested.

Whoever reads a capture in partitions collects the state of each, merges them, and gives the result to all. Each
partition then decodes its rows as if it had the whole capture.

Invariant: where two partitions say different things, the earlier packet wins. So the order of merging makes no
difference.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

VersionRanges = Mapping[int, tuple[int, int]]
"""Lowest and highest version by API key."""
NO_VERSIONS: Final[VersionRanges] = {}
"""The same object for every connection that has none: who counts versions keeps each object once."""
Learned = dict[Any, tuple[int, Any]]
"""Values by key, each with the number of the packet that has it."""


class LearnedNames:
    """Names of one kind of thing: the earliest packet wins."""

    def __init__(self, known: Learned | None = None) -> None:
        self.known: Learned = known or {}
        self.values: dict[Any, Any] = {key: value for key, (_, value) in self.known.items()}
        """Without the packets. The dict stays the same object; it is changed in place."""

    def learn(self, key: Any, value: Any, packet: int) -> None:
        """Add a name that a packet has."""
        if key not in self.known or packet < self.known[key][0]:
            self.known[key] = (packet, value)
            self.values[key] = value

    def forget(self, key: Any) -> None:
        """Take a name away."""
        del self.known[key], self.values[key]

    def merge(self, known: Learned) -> None:
        """Add names that were learned elsewhere."""
        for key, (packet, value) in known.items():
            self.learn(key, value, packet)


@dataclass
class SharedState:
    """Of one partition, or of several merged."""

    topics: Learned = field(default_factory=dict)
    groups: Learned = field(default_factory=dict)
    nodes: Learned = field(default_factory=dict)
    members: Learned = field(default_factory=dict)
    producers: Learned = field(default_factory=dict)
    advertised_versions: Learned = field(default_factory=dict)
    """By server, `host:port`."""
    requests: Counter[tuple[int, int]] = field(default_factory=Counter)
    """How many requests have each API key and version."""

    @classmethod
    def merged(cls, partitions: Iterable["SharedState"]) -> "SharedState":
        """Merge the state of partitions."""
        names = {each: LearnedNames() for each in cls.__dataclass_fields__ if each != "requests"}
        requests: Counter[tuple[int, int]] = Counter()
        for partition in partitions:
            for name, learned in names.items():
                learned.merge(getattr(partition, name))
            requests.update(partition.requests)
        return cls(**{name: learned.known for name, learned in names.items()}, requests=requests)

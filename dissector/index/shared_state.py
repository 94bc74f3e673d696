"""What a part of a capture teaches those who read its other parts: names, offers, what is asked how often.

Whoever reads a capture in parts lets each part tell what it has to teach, puts that together, and gives it to all:
each part then reads as it would in the whole.

Invariant: of two parts that say different things, that holds which came in the earlier packet: so the order in which
lessons are put together makes no difference.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Offer = Mapping[int, tuple[int, int]]
"""Lowest and highest version by API key."""
Known = dict[Any, tuple[int, Any]]
"""What is known under a key, with the packet that says so."""


class LearnedNames:
    """Names of one kind of things: what the earliest packet says holds."""

    def __init__(self, known: Known | None = None) -> None:
        self.known: Known = known or {}
        self.values: dict[Any, Any] = {key: value for key, (_, value) in self.known.items()}
        """Kept, and changed in place."""

    def learn(self, key: Any, value: Any, packet: int) -> None:
        """A packet says it."""
        if key not in self.known or packet < self.known[key][0]:
            self.known[key] = (packet, value)
            self.values[key] = value

    def take(self, known: Known) -> None:
        """What others have learned."""
        for key, (packet, value) in known.items():
            self.learn(key, value, packet)


@dataclass
class SharedState:
    """Of one part, or of several put together."""

    topics: Known = field(default_factory=dict)
    groups: Known = field(default_factory=dict)
    nodes: Known = field(default_factory=dict)
    members: Known = field(default_factory=dict)
    producers: Known = field(default_factory=dict)
    offers: Known = field(default_factory=dict)
    """By server, `host:port`."""
    asked: Counter[tuple[int, int]] = field(default_factory=Counter)
    """How often each API, by key, is asked for in each version."""

    @classmethod
    def together(cls, parts: Iterable["SharedState"]) -> "SharedState":
        """What all of them teach."""
        names = {each: LearnedNames() for each in cls.__dataclass_fields__ if each != "asked"}
        asked: Counter[tuple[int, int]] = Counter()
        for part in parts:
            for name, learned in names.items():
                learned.take(getattr(part, name))
            asked.update(part.asked)
        return cls(**{name: learned.known for name, learned in names.items()}, asked=asked)

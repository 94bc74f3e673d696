"""Match names that differ between the sides: the first one of a kind on either side is #1, the second one #2.

A name that both sides have matches itself. Names that a run generates (member ids, producer ids, uuids) are matched by
order alone: equal ones are a coincidence.
"""

import re
from typing import Final, NamedTuple

from dissector.analysis.diff.compared_values import ComparedValue, EntityName
from dissector.analysis.diff.matching_keys import MatchingKey
from dissector.analysis.diff.message_leaves import ElementLabel, LeafPath

GENERATED_KINDS: Final = frozenset(("member", "producer", "uuid", "fetch session", "port", "cluster", "subscription"))
KINDS_IN_TEXTS: Final = ("member", "group", "topic", "transaction", "instance")
"""Kinds of names that texts contain: a coordinator's key, the reason for rejoining a group."""
MIN_TEXT_NAME: Final = 4
MAX_TEXT_NAMES: Final = 200
MAX_LISTED: Final = 20


class MatchedNames(NamedTuple):
    """Two names that are matched with each other."""

    kind: str
    number: int
    a: str
    b: str


NamesByKind = dict[str, dict[str, None]]


class NameMatching:
    """Renames the names of each side to their common ones."""

    def __init__(self, a: NamesByKind, b: NamesByKind) -> None:
        self._texts: tuple[dict[EntityName, EntityName], dict[EntityName, EntityName]] = ({}, {})
        self.matched: list[MatchedNames] = []
        for kind in dict.fromkeys((*a, *b)):
            of_a, of_b = a.get(kind, {}), b.get(kind, {})
            common = frozenset() if kind in GENERATED_KINDS else of_a.keys() & of_b.keys()
            others = [[name for name in side if name not in common] for side in (of_a, of_b)]
            for side, names in enumerate(others):
                for number, name in enumerate(names, 1):
                    self._texts[side][EntityName(kind, name)] = EntityName(kind, f"#{number}")
            if kind not in GENERATED_KINDS:
                pairs = list(zip(*others, strict=False))[:MAX_LISTED]
                self.matched += [MatchedNames(kind, number, *pair) for number, pair in enumerate(pairs, 1)]

        self._in_texts = [self._text_pattern(side) for side in self._texts]

    @staticmethod
    def _text_pattern(texts: dict[EntityName, EntityName]) -> tuple[re.Pattern[str], dict[str, str]]:
        """Return a pattern for names in texts, longer ones first, and their replacements."""
        replacements = {
            name.text: f"{name.kind} {common.text}"
            for kind in KINDS_IN_TEXTS
            for name, common in texts.items()
            if name.kind == kind and len(name.text) >= MIN_TEXT_NAME
        }
        longest = sorted(replacements, key=len, reverse=True)[:MAX_TEXT_NAMES]
        return re.compile("|".join(map(re.escape, longest)) or r"(?!)"), replacements

    def value(self, side: int, value: ComparedValue) -> ComparedValue:
        """Return a value with its names replaced; `side` is 0 for A, 1 for B."""
        if isinstance(value, EntityName):
            return self._texts[side].get(value, value)
        if isinstance(value, str) and value:
            pattern, replacements = self._in_texts[side]
            return pattern.sub(lambda match: replacements[match[0]], value)
        return value

    def path(self, side: int, path: LeafPath) -> LeafPath:
        """Return a path with the names in its labels replaced."""
        return tuple(
            ElementLabel(self.value(side, step.value)) if isinstance(step, ElementLabel) else step for step in path
        )

    def key(self, side: int, key: MatchingKey) -> MatchingKey:
        """Return a key with the names in its subject replaced."""
        subject = tuple(
            self._texts[side].get(each, each) if isinstance(each, EntityName) else each for each in key.subject
        )
        return key._replace(subject=subject)

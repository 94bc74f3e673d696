"""Names that differ between the sides and mean the same: the first one seen on either side is #1.

A name that both sides have means itself. Names that a run makes up (member ids, producer ids, uuids) are matched by
order alone: where both sides have the same, that is chance.
"""

import re
from typing import Final, NamedTuple

from dissector.analysis.diff.compared_values import ComparedValue, EntityName
from dissector.analysis.diff.matching_keys import MatchingKey
from dissector.analysis.diff.message_leaves import ElementLabel, LeafPath

GENERATED_KINDS: Final = frozenset(("member", "producer", "uuid", "fetch session", "port", "cluster", "subscription"))
KINDS_IN_TEXTS: Final = ("member", "group", "topic", "transaction", "instance")
"""Names that may stand in a text: in a coordinator's key, in the reason for joining a group again."""
MIN_TEXT_NAME: Final = 4
MAX_TEXT_NAMES: Final = 200
MAX_LISTED: Final = 20


class MatchedNames(NamedTuple):
    """Two names that are taken for one; either may have none of that number."""

    kind: str
    number: int
    a: str
    b: str


NamesByKind = dict[str, dict[str, None]]


class NameMatching:
    """What each side's names are called in the comparison."""

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

        self._in_texts = [self._finder(side) for side in self._texts]

    @staticmethod
    def _finder(texts: dict[EntityName, EntityName]) -> tuple[re.Pattern[str], dict[str, str]]:
        """What finds names in a text, and what they are replaced by; the longer names first."""
        words = {
            own.text: f"{own.kind} {symbol.text}"
            for kind in KINDS_IN_TEXTS
            for own, symbol in texts.items()
            if own.kind == kind and len(own.text) >= MIN_TEXT_NAME
        }
        longest = sorted(words, key=len, reverse=True)[:MAX_TEXT_NAMES]
        return re.compile("|".join(map(re.escape, longest)) or r"(?!)"), words

    def value(self, side: int, value: ComparedValue) -> ComparedValue:
        """A value as the comparison has it; `side` is 0 for A, 1 for B."""
        if isinstance(value, EntityName):
            return self._texts[side].get(value, value)
        if isinstance(value, str) and value:
            pattern, words = self._in_texts[side]
            return pattern.sub(lambda found: words[found[0]], value)
        return value

    def path(self, side: int, path: LeafPath) -> LeafPath:
        """A path with its labels renamed."""
        return tuple(
            ElementLabel(self.value(side, step.value)) if isinstance(step, ElementLabel) else step for step in path
        )

    def key(self, side: int, key: MatchingKey) -> MatchingKey:
        """A key with its subject renamed."""
        subject = tuple(
            self._texts[side].get(each, each) if isinstance(each, EntityName) else each for each in key.subject
        )
        return key._replace(subject=subject)

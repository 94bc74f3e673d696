"""Names that differ between the sides and mean the same: the first one seen on either side is #1.

A name that both sides have means itself. Names that a run makes up (member ids, producer ids, uuids) are matched by
order alone: where both sides have the same, that is chance.
"""

import re
from typing import Final, NamedTuple

from dissector.analysis.diff.kinds import Symbol, Value
from dissector.analysis.diff.leaves import Label, Path
from dissector.analysis.diff.meaning import Key

MADE_UP: Final = frozenset(("member", "producer", "uuid", "fetch session", "port", "cluster", "subscription"))
IN_TEXTS: Final = ("member", "group", "topic", "transaction", "instance")
"""Names that may stand in a text: in a coordinator's key, in the reason for joining a group again."""
LEAST_IN_TEXTS: Final = 4
MOST_IN_TEXTS: Final = 200
MOST_TOLD: Final = 20


class Matched(NamedTuple):
    """Two names that are taken for one; either may have none of that number."""

    kind: str
    number: int
    a: str
    b: str


Known = dict[str, dict[str, None]]


class Names:
    """What each side's names are called in the comparison."""

    def __init__(self, a: Known, b: Known) -> None:
        self._texts: tuple[dict[Symbol, Symbol], dict[Symbol, Symbol]] = ({}, {})
        self.matched: list[Matched] = []
        for kind in dict.fromkeys((*a, *b)):
            of_a, of_b = a.get(kind, {}), b.get(kind, {})
            common = frozenset() if kind in MADE_UP else of_a.keys() & of_b.keys()
            others = [[name for name in side if name not in common] for side in (of_a, of_b)]
            for side, names in enumerate(others):
                for number, name in enumerate(names, 1):
                    self._texts[side][Symbol(kind, name)] = Symbol(kind, f"#{number}")
            if kind not in MADE_UP:
                pairs = list(zip(*others, strict=False))[:MOST_TOLD]
                self.matched += [Matched(kind, number, *pair) for number, pair in enumerate(pairs, 1)]

        self._in_texts = [self._finder(side) for side in self._texts]

    @staticmethod
    def _finder(texts: dict[Symbol, Symbol]) -> tuple[re.Pattern[str], dict[str, str]]:
        """What finds names in a text, and what they are replaced by; the longer names first."""
        words = {
            own.text: f"{own.kind} {symbol.text}"
            for kind in IN_TEXTS
            for own, symbol in texts.items()
            if own.kind == kind and len(own.text) >= LEAST_IN_TEXTS
        }
        longest = sorted(words, key=len, reverse=True)[:MOST_IN_TEXTS]
        return re.compile("|".join(map(re.escape, longest)) or r"(?!)"), words

    def value(self, side: int, value: Value) -> Value:
        """A value as the comparison has it; `side` is 0 for A, 1 for B."""
        if isinstance(value, Symbol):
            return self._texts[side].get(value, value)
        if isinstance(value, str) and value:
            pattern, words = self._in_texts[side]
            return pattern.sub(lambda found: words[found[0]], value)
        return value

    def path(self, side: int, path: Path) -> Path:
        """A path with its labels renamed."""
        return tuple(Label(self.value(side, step.value)) if isinstance(step, Label) else step for step in path)

    def key(self, side: int, key: Key) -> Key:
        """A key with its subject renamed."""
        subject = tuple(self._texts[side].get(each, each) if isinstance(each, Symbol) else each for each in key.subject)
        return key._replace(subject=subject)

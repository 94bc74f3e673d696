"""How alike the words of two names are, and which words of one side's names stand for which of the other side's.

A program puts the names that it is given into those that it makes: who calls clusters ``tea`` and ``shop`` has a topic
``mm2-configs.tea.internal``, and who calls them ``oak`` and ``elm`` has ``mm2-configs.oak.internal``. Pairs of names
that are certain show that ``tea`` stands for ``oak``. Digits are no words: they number runs.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

MAX_CHARACTERS: Final = 256
"""Of a name. Topics have up to 249."""
_WORD: Final = re.compile(r"[^\W\d_]+")


class NameWords:
    """Compares the words of A's names with those of B's."""

    def __init__(self) -> None:
        self._pairs = Counter[tuple[str, str]]()
        """How often a word of A stands where B has which one."""
        self._likenesses: dict[tuple[tuple[str, ...], tuple[str, ...]], float] = {}
        """Of words: names that are numbered have the same."""
        self._words_of_b: dict[str, str] = {}
        """Words of B, by those of A that stand for them: each is for the other the one that it is paired with most."""

    def learn(self, names: Iterable[tuple[str, str]]) -> None:
        """Pair the words of names that have equally many."""
        for a, b in names:
            if len(_words(a)) == len(_words(b)):
                self._pairs.update(zip(_words(a), _words(b), strict=True))
        self._likenesses.clear()
        most = [_most((pair[side], pair[1 - side], times) for pair, times in self._pairs.items()) for side in (0, 1)]
        self._words_of_b = {a: b for a, b in most[0].items() if most[1].get(b) == a}

    def likeness(self, a: str, b: str) -> float:
        """Return how many of their words two names have in common, from 0 to 1."""
        words = _words(a), _words(b)
        known = self._likenesses.get(words)
        if known is None:
            mine, other = Counter(self._words_of_b.get(word, word) for word in words[0]), Counter(words[1])
            known = 2 * (mine & other).total() / max(1, mine.total() + other.total())
            self._likenesses[words] = known
        return known


def _most(pairs: Iterable[tuple[str, str, int]]) -> dict[str, str]:
    """Return for each word the one that it is paired with more often than with any other."""
    found: dict[str, Counter[str]] = {}
    for word, other, times in pairs:
        found.setdefault(word, Counter())[other] = times
    most = {word: [*others.most_common(2), ("", 0)] for word, others in found.items()}
    return {word: first for word, ((first, times), (_, next_times), *_) in most.items() if times > next_times}


@lru_cache(maxsize=1 << 12)
def _words(name: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(name[:MAX_CHARACTERS].casefold()))

"""What a word may have meant: the names that are like it, and how an error names them."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

ALIKE: Final = 0.6
"""How alike, from 0 to 1, a word and a name are for the one to be meant by the other."""

_PARTS: Final = re.compile("[_. -]")


def nearest(word: str, names: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """Return the names most similar to a word, ignoring case, first those that it begins; if none is similar, those
    that begin with it or contain it; else those with most of its parts, as NOT_LEADER_OR_FOLLOWER for NOT_A_LEADER."""
    from difflib import get_close_matches  # for errors alone

    by_folded = {name.casefold(): name for name in names}
    folded = word.casefold()
    found = get_close_matches(folded, by_folded, n=most, cutoff=ALIKE)
    found.sort(key=lambda name: not name.startswith(folded))
    if not found and folded:
        begin = sorted((name for name in by_folded if name.startswith(folded)), key=len)
        hold = sorted((name for name in by_folded if folded in name), key=len) if len(folded) > 2 else []
        found = list(dict.fromkeys([*begin, *hold]))[:most] or _with_most_parts(folded, by_folded)[:most]
    return tuple(by_folded[name] for name in found)


def _with_most_parts(word: str, names: Iterable[str]) -> list[str]:
    """Return the names that share most parts with a word, two at least; first those that begin with the same one."""
    parts = _PARTS.split(word)
    shared = {name: len({*parts} & {*_PARTS.split(name)}) for name in names}
    most = max(shared.values(), default=0)
    found = [name for name, count in shared.items() if count == most] if most > 1 else []
    return sorted(found, key=lambda name: not name.startswith(parts[0]))


def alternatives(words: Sequence[str], joining: str = "or") -> str:
    """Return ``a``, ``a or b``, ``a, b or c``."""
    return f" {joining} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def did_you_mean(word: str, names: Iterable[str], most: int = 3) -> str:
    """Return the end of an error about an unknown name: ``; did you mean acks``; nothing if no name is similar.

    >>> did_you_mean("ack", ["acks", "topic"])
    '; did you mean acks'
    """
    near = nearest(word, names, most)
    return f"; did you mean {alternatives(near)}" if near else ""

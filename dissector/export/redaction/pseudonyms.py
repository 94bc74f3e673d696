"""Replaces names one for one, by pseudonyms of the same size in bytes.

A pseudonym has the kind of the name, as far as there is room: ``topic-0001``, ``top1``, ``1``. If a capture has more
short names than there are pseudonyms (36 of one byte, 1,296 of two), the later ones share asterisks.
"""

from collections import Counter
from string import ascii_lowercase, digits
from typing import Final

ALPHABET: Final = digits + ascii_lowercase
MASK: Final = b"*"


class Pseudonyms:
    """The names of a capture and their pseudonyms."""

    def __init__(self) -> None:
        self._replacements: dict[bytes, bytes] = {}
        self._taken: set[bytes] = set()
        self._counts: Counter[tuple[str, int]] = Counter()

    def of(self, name: bytes, word: str) -> bytes:
        """Return the pseudonym of a name; `word` is its kind, used when the name is new."""
        if name not in self._replacements:
            self._replacements[name] = self._new(name, word)
        return self._replacements[name]

    def _new(self, name: bytes, word: str) -> bytes:
        size = len(name)
        while self._counts[word, size] < len(ALPHABET) ** size - 1:
            self._counts[word, size] += 1
            pseudonym = _pseudonym(word, self._counts[word, size], size)
            if pseudonym not in self._taken and pseudonym != name:
                self._taken.add(pseudonym)
                return pseudonym
        return MASK * size


def _pseudonym(word: str, number: int, size: int) -> bytes:
    count = ""
    while number:
        number, digit = divmod(number, len(ALPHABET))
        count = ALPHABET[digit] + count
    room = size - len(count)
    return (f"{word}-"[:room].ljust(room, "0") + count).encode()

"""Replaces names and addresses one for one, by others of the same size or kind.

The pseudonym of a name has its size in bytes, and its kind, as far as there is room: ``topic-0001``, ``top1``, ``1``.
If a capture has more short names than there are pseudonyms (36 of one byte, 1,296 of two), the later ones share
asterisks.

An address becomes one of the same kind: private stays private, IPv4 keeps its digits' number. So an address in the text
of a message keeps its length, and still equals that of the packets. Loopback and the unspecified address identify
nobody and stay. IPv6 becomes an address of RFC 3849, or of RFC 4193 if it was private.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import product
from string import ascii_lowercase, digits
from typing import Final

ALPHABET: Final = digits + ascii_lowercase
MASK: Final = b"*"
_CHOICES: Final = (range(0), range(10), range(10, 100), range(100, 256))
"""The numbers of an IPv4 address by their number of digits."""
_PUBLIC: Final = (range(0), range(1, 10), range(11, 100), (*range(128, 169), *range(173, 192), *range(193, 224)))
"""First numbers that make the address neither private nor loopback nor multicast."""
_V6: Final = (("fe80::", "is_link_local"), ("fd00::", "is_private"), ("2001:db8::", "is_global"))


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


class AddressPseudonyms:
    """The addresses of a capture and their replacements."""

    def __init__(self) -> None:
        self._replacements: dict[str, str] = {}
        self._taken: set[str] = set()
        self._unused: dict[tuple[Sequence[int], ...], Iterator[tuple[int, ...]]] = {}
        """Unused addresses, by the choices for each of the four numbers."""

    def of(self, text: str) -> str:
        """Return the replacement of an address. Raises `ValueError` for other text."""
        if text not in self._replacements:
            address = ip_address(text)
            stays = address.is_loopback or address.is_unspecified
            new = text if stays else _v6(address, len(self._taken)) if address.version == 6 else self._v4(text)
            self._replacements[text] = new
            self._taken.add(new)
        return self._replacements[text]

    def _v4(self, text: str) -> str:
        """Return an unused address of the same form; if none is left, a shared one."""
        choices = _choices(text)
        for numbers in self._unused.setdefault(choices, product(*choices)):
            new = ".".join(map(str, numbers))
            if new != text and new not in self._taken and new not in self._replacements:
                return new
        return ".".join(str(each[-1]) for each in choices)


def _choices(text: str) -> tuple[Sequence[int], ...]:
    """Return the choices for each of the four numbers."""
    numbers = [int(part) for part in text.split(".")]
    free: list[Sequence[int]] = [_CHOICES[len(str(number))] for number in numbers]
    if not IPv4Address(text).is_global:
        kept = 1 if numbers[0] == 10 else 2
        return (*((number,) for number in numbers[:kept]), *free[kept:])
    return (_PUBLIC[len(str(numbers[0]))], *free[1:])


def _v6(address: IPv4Address | IPv6Address, count: int) -> str:
    prefix = next((prefix for prefix, kind in _V6 if getattr(address, kind)), _V6[-1][0])
    return str(ip_address(int(ip_address(prefix)) + count + 1))

"""Changes to bytes that are likely to hurt: lengths and counts that lie, pieces lost, doubled, moved, grafted."""

import random
from collections.abc import Callable, Sequence
from typing import Final

from tests.protocol.random_messages import uvarint

INTERESTING: Final = (0, 1, 2, 7, 16, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 1 << 24, 0x7FFFFFFF, 1 << 31,
                      0xFFFFFFFF, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip
MOST_CHANGES: Final = 6
LONGEST: Final = 64 << 10
"""Bytes that doubling and grafting may reach."""

Change = Callable[[bytearray, random.Random], None]


def mutated(data: bytes, chance: random.Random, others: Sequence[bytes] = (), changes: Sequence[Change] = ()) -> bytes:
    """`data` after a few `changes`, by default any; `others` are what pieces may be grafted from."""
    out = bytearray(data or b"\0")
    for _ in range(min(chance.randint(1, MOST_CHANGES), chance.randint(1, MOST_CHANGES))):
        if others and chance.random() < 0.1:
            _graft(out, chance, chance.choice(others))
        else:
            chance.choice(changes or CHANGES)(out, chance)
        if not out:
            break
    return bytes(out)


def _byte(out: bytearray, chance: random.Random) -> None:
    out[chance.randrange(len(out))] = chance.choice((chance.randrange(256), 0, 1, 0x7F, 0x80, 0xFF))


def _bit(out: bytearray, chance: random.Random) -> None:
    out[chance.randrange(len(out))] ^= 1 << chance.randrange(8)


def _nudge(out: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(out))
    out[at] = (out[at] + chance.randint(-3, 3)) % 256


def _number(out: bytearray, chance: random.Random) -> None:
    """An integer of a usual width becomes one that tends to lie at some border."""
    width = chance.choice((2, 4, 4, 8))
    at = chance.randrange(len(out))
    value = (chance.choice(INTERESTING) + chance.randint(-1, 1)) % (1 << 8 * width)
    out[at : at + width] = value.to_bytes(width, "big" if chance.random() < 0.8 else "little")


def _varint(out: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(out))
    number = uvarint(chance.choice(INTERESTING)) if chance.random() < 0.8 else b"\xff" * chance.randint(5, 11)
    out[at : at + chance.choice((1, len(number)))] = number


def _lose(out: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(out))
    del out[at : at + chance.randint(1, min(64, len(out)))]


def _cut(out: bytearray, chance: random.Random) -> None:
    del out[chance.randrange(len(out)) :]


def _double(out: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(out))
    piece = bytes(out[at : at + chance.randint(1, 64)])
    if len(out) < LONGEST:
        out[at:at] = piece * chance.choice((1, 1, 2, 20))


def _swap(out: bytearray, chance: random.Random) -> None:
    size = chance.randint(1, 16)
    one, other = sorted(chance.randrange(len(out)) for _ in range(2))
    if other + size <= len(out) and one + size <= other:
        out[one : one + size], out[other : other + size] = out[other : other + size], out[one : one + size]


def _noise(out: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(out))
    out[at:at] = chance.randbytes(chance.randint(1, 16))


def _graft(out: bytearray, chance: random.Random, other: bytes) -> None:
    at, start = chance.randrange(len(out)), chance.randrange(max(1, len(other)))
    piece = other[start : start + chance.randint(1, 200)]
    out[at : at + chance.choice((0, len(piece)))] = piece


CHANGES: Final[Sequence[Change]] = (
    _byte, _byte, _bit, _bit, _nudge, _number, _number, _varint, _varint, _lose, _cut, _double, _swap, _noise,
)  # fmt: skip
IN_PLACE: Final[Sequence[Change]] = (_byte, _byte, _bit, _bit, _nudge, _number, _number, _varint, _lose, _cut, _noise)
"""Those that copy no bytes to another place."""

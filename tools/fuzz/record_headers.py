"""Sections of records whose headers are many, huge or odd, and the batches that hold them."""

import random
from typing import Final

from tests.protocol.random_messages import uvarint

COUNTS: Final = (0, 1, 1, 2, 3, 10, 100, 100, 1_000)
DEEP: Final = (19_990, 20_010, 100_000, 1_000_000, 4_000_000)
"""Around what a frame may have beyond its size, and far above."""
DEEP_SHARE: Final = 0.02
LIES: Final = (-1, -(2**31), 1, 2, 127, 128, 2**31 - 1, 2**32, 2**63 - 1)
KEYS: Final = (
    b"",
    b"k",
    b"k",
    b"traceparent",
    b"__TypeId__",
    b"\xff\xfe",
    b"\x1b[2J",
    "ключ".encode(),
    b"a\nb",
    b"k" * 300,
)
VALUES: Final = (None, b"", b"v", b"\0" * 16, b"00-4bf92f3577b34da6-00f067aa0ba902b7-01", b"\xac\xed\0\5t\0\1x", b"{}",
                 b"\x1b]0;x\7", b"v" * 5_000)  # fmt: skip
LEAST: Final = (b"\0\0", b"\0\1", b"\2k\1", b"\2k\2v")
"""The shortest headers: no key and no value, a null value, a letter each."""


def varint(number: int, chance: random.Random | None = None) -> bytes:
    """A number as records have it; now and then in more bytes than it needs."""
    raw = uvarint((number << 1) ^ (number >> 63) if number >= -(2**63) else 0)
    if chance is not None and chance.random() < 0.02 and len(raw) < 5:
        raw = raw[:-1] + bytes([raw[-1] | 0x80]) + b"\x80" * chance.randint(0, 4 - len(raw)) + b"\0"
    return raw


def section(chance: random.Random) -> tuple[bytes, int]:
    """A section of records, and how many they are."""
    if chance.random() < DEEP_SHARE:
        count = chance.choice(DEEP)
        return _record(varint(count) + chance.choice(LEAST) * count, chance), 1
    records = chance.choice((1, 1, 2, 5, 50))
    return b"".join(_record(_headers(chance), chance) for _ in range(records)), records


def _headers(chance: random.Random) -> bytes:
    count = chance.choice(COUNTS)
    headers = b"".join(_header(chance) for _ in range(count))
    if chance.random() < 0.1:
        count = chance.choice((*LIES, count + 1, count - 1))
    return varint(count, chance) + headers


def _header(chance: random.Random) -> bytes:
    if chance.random() < 0.7:
        return chance.choice(LEAST)
    key, value = chance.choice(KEYS), chance.choice(VALUES)
    key_size = len(key) if chance.random() > 0.01 else chance.choice((*LIES, len(key) + 1))
    if value is None:
        return varint(key_size, chance) + key + varint(-1)
    size = len(value) if chance.random() > 0.01 else chance.choice((*LIES, len(value) - 1))
    return varint(key_size, chance) + key + varint(size, chance) + value


def _record(headers: bytes, chance: random.Random) -> bytes:
    key, value = (chance.choice((b"\1", b"\0", b"\2k", b"\x0ahello")) for _ in range(2))
    body = bytes([0]) + varint(chance.choice((0, 0, 1, -1, 2**40))) + varint(0, chance) + key + value + headers
    size = len(body) if chance.random() > 0.03 else len(body) + chance.choice((-1, 1, 5))
    return varint(size) + body

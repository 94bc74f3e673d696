"""Formats without a schema: text of logins, protobuf. What is inside is told as parts that tile the bytes.

A part's span takes in what delimits it (a comma, a NUL, a length); its value does not.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SubtreeItem:
    """A stretch of bytes with a name. `parts` tile its end; what stands before them belongs to the part itself."""

    name: str
    kind: str
    start: int
    end: int
    value: object = None
    note: str = ""
    secret: tuple[int, int] | None = None
    """Which bytes of it would let somebody else log in."""
    items: tuple["SubtreeItem", ...] = ()


@dataclass(frozen=True, slots=True)
class Subtree:
    """Something inside bytes; `name` says what."""

    name: str
    items: tuple[SubtreeItem, ...]
    plain: bytes | None = None
    """What the parts stand in, where the bytes are compressed."""
    codec: int = 0
    """Kafka's number of it."""

    def read(self, raw: bytes) -> dict[str, Any]:
        """As plain values; a name that repeats has a list. `raw` is what the parts were made of."""
        return _values(self.items)


def _values(items: tuple[SubtreeItem, ...]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for item in items:
        value = _values(item.items) if item.items else item.value
        if item.name not in out:
            out[item.name] = value
        elif isinstance(out[item.name], list):
            out[item.name].append(value)
        else:
            out[item.name] = [out[item.name], value]
    return out

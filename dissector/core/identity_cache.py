"""What was made of objects that never change, kept by their identity for as long as they are likely to come again.

Invariants: an object is alive as long as anything is kept for it, so that no other one has its identity; what is kept
has a bound, past which all is forgotten; a checkpoint has nothing of it, as objects have other identities when they are
read again.
"""

from typing import Any, Generic, TypeVar

T = TypeVar("T")


class IdentityCache(Generic[T]):
    """Values of objects. `most` bounds the sum of the sizes that callers give."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[int, tuple[object, T]] = {}
        self._size = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"_most": self._most, "_kept": {}, "_size": 0}

    def get(self, of: object) -> T | None:
        """Return what is kept for an object."""
        found = self._kept.get(id(of))
        return None if found is None else found[1]

    def put(self, of: object, value: T, size: int) -> T:
        """Keep a value for an object for which none is kept, and return it. The newest is kept whatever its size."""
        if self._size + size > self._most:
            self.clear()
        self._kept[id(of)] = of, value
        self._size += size
        return value

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()
        self._size = 0

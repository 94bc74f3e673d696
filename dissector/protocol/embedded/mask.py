"""What stands in place of a secret in bytes that keep their size: asterisks, or of a number in JSON another number."""

from typing import Final, NamedTuple

_MASK: Final = b"*"


class Mask(NamedTuple):
    """Bytes to be replaced by others, as many."""

    start: int
    end: int
    number: bool = False
    """Whether they are a number, which JSON needs in their place, or a text."""

    def content(self) -> bytes:
        """What stands in place of them."""
        size = self.end - self.start
        return _MASK * size if not self.number else b"-" * (size - 1) + b"0" if size < 3 else b"0." + b"0" * (size - 2)

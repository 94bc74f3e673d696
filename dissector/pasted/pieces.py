"""What is found in a text: pieces, each a run of bytes with its place, and what the text around it says of it."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple


class Hole(NamedTuple):
    """Bytes that a text leaves out and counts."""

    at: int
    """Bytes of the piece before it."""
    size: int


@dataclass(slots=True)
class Piece:
    """Bytes that stand together in a text."""

    start: int
    """The place of its first character in the text, ..."""
    end: int
    """... and of the first one behind it."""
    data: bytes
    from_client: bool | None = None
    """What marks, labels or indentation say of its direction; None where nothing does."""
    connection: int = 1
    """Pieces with different numbers belong to different connections."""
    holes: list[Hole] = field(default_factory=list)
    time_ns: int | None = None
    """Of a packet: when it was captured."""
    cell: int = 1
    """Bytes that are written as one number, if all are."""
    padding: bytes = b""
    """The rest of the last number, where the bytes end inside it."""
    _added: list[bytes] = field(default_factory=list)

    def add(self, data: bytes, end: int) -> None:
        """Add bytes that end at a place of the text. `data` has them after `finish`: joining them one by one would take
        time that grows with the square of their number."""
        self._added.append(data)
        self.end = end

    def finish(self) -> None:
        """Join what was added."""
        if self._added:
            self.data = b"".join((self.data, *self._added))
            self._added.clear()

    def swapped(self) -> "Piece":
        """Return the piece with numbers as little-endian ones."""
        data = self.data + self.padding
        whole = len(data) - len(data) % self.cell
        ordered = b"".join(data[at : at + self.cell][::-1] for at in range(0, whole, self.cell))
        ordered += data[whole:][::-1]  # a last number of fewer bytes
        return replace(self, data=ordered[: len(self.data)])


class FoundPieces(NamedTuple):
    """What one recognizer found."""

    form: str
    """What the form is called, as in ``hex dump``."""
    pieces: list[Piece]

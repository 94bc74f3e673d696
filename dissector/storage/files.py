"""Kafka's own files among the inputs: their entries as rows, in the order of the files."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from mmap import mmap
from typing import TYPE_CHECKING, Final

import numpy as np

from dissector.capture.errors import DamagedRange as Damaged
from dissector.core.arrays import Int64, UInt8
from dissector.core.columns import Column
from dissector.core.finding import Finding, Severity
from dissector.core.mapped_files import intact_size
from dissector.exchange.model import Exchange, ExchangeRow, worst

if TYPE_CHECKING:  # imported on use: most inputs are captures
    from dissector.storage.entry import EntryPosition, KafkaFile

ENTRIES_PER_STEP: Final = 1 << 14
"""Entries that are found in one step of `read`."""
_PIECE: Final = 1 << 22
"""Bytes that are copied at a time."""


@dataclass
class _OpenedFile:
    name: str
    data: mmap
    file: "KafkaFile"
    first: int = 0
    """The number of its first entry."""
    starts: Column = field(default_factory=lambda: Column(np.int64))
    ends: Column = field(default_factory=lambda: Column(np.int64))


class KafkaFiles:
    """Takes files that it recognizes; `read` finds their entries; each is decoded on demand."""

    def __init__(self, *, show_secrets: bool) -> None:
        self._show_secrets = show_secrets
        self._opened: list[_OpenedFile] = []
        self._read = 0
        """Number of files that are read."""
        self.problems: list[Finding] = []
        self.damage: list[Damaged] = []
        """Positions of the problems."""

    def take(self, name: str, data: mmap) -> bool:
        """Take a file if it is one of Kafka's own; return whether it is."""
        from dissector.storage.indexes import read_index
        from dissector.storage.segment import read_segment

        file: KafkaFile | None = read_segment(name, data, show_secrets=self._show_secrets) or read_index(data)
        if file is not None:
            self._opened.append(_OpenedFile(name, data, file))
        return file is not None

    def may_take(self, head: UInt8) -> bool:
        """Return whether it may take a file that begins with these bytes and goes on."""
        from dissector.storage.indexes import may_be_index
        from dissector.storage.segment import may_be_segment

        return may_be_segment(head) or may_be_index(head)

    def __len__(self) -> int:
        return sum(len(opened.starts) for opened in self._opened)

    @property
    def count(self) -> int:
        """Number of files."""
        return len(self._opened)

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes of the files, decompressed, in hexadecimal."""
        from hashlib import sha256  # loads OpenSSL, which captures don't need

        digest = sha256()
        for opened in self._opened:
            for start in range(0, len(opened.data), _PIECE):
                digest.update(_intact(opened.data, start, start + _PIECE))
        return digest.hexdigest()

    @property
    def start_ns(self) -> int:
        """Time of the first entry of the first file with times, nanoseconds since 1970; 0 if none has. Entries of some
        indexes have no times."""
        firsts = (opened.first for opened in self._opened if len(opened.starts))
        return next(filter(None, (self.exchange(number).fields.time_ns for number in firsts)), 0)

    def read(self) -> Iterator[None]:
        """Find all entries of files that were taken since the last call, step by step."""
        for opened in self._opened[self._read :]:
            self._read += 1
            opened.first = len(self)
            found: list[EntryPosition] = []
            for place in opened.file.places():
                found.append(place)
                if len(found) == ENTRIES_PER_STEP:
                    _keep(opened, found)
                    yield
            _keep(opened, found)
            if damage := opened.file.damage:
                self.damage.append(damage)
                where = f"{opened.name}: at byte {damage.at:,}"
                words = f"{where}: {damage.reason}; {damage.size:,} bytes are left out"
                self.problems.append(Finding("file-damaged", Severity.WARNING, words))
            yield

    def file_of(self, number: int) -> int:
        """Return the number of an entry's file, from 1. It takes the place of a connection's number."""
        return max(n for n, opened in enumerate(self._opened, 1) if opened.first <= number and len(opened.starts))

    def name_of(self, which: int) -> str:
        """Return the name of a file by its number."""
        return self._opened[which - 1].name

    def sizes(self) -> Int64:
        """Return the bytes of each entry, `(n,)`."""
        none = np.empty(0, np.int64)
        return np.concatenate([none, *(opened.ends.values - opened.starts.values for opened in self._opened)])

    def exchange(self, number: int) -> Exchange:
        """Return entry `number`, from 0, as an exchange."""
        which = self.file_of(number)
        opened = self._opened[which - 1]
        at = number - opened.first
        start, end = int(opened.starts.values[at]), int(opened.ends.values[at])
        entry = opened.file.entry(_intact(opened.data, start, end), start)
        kind, message = opened.file.kind, entry.message
        row = ExchangeRow(
            number + 1, kind, message.time_ns, which, "", opened.name, kind, entry.version, None, None, message.size,
            *(None,) * 7, entry.info, worst(entry.findings),
        )  # fmt: skip
        return Exchange(row, None, message, None, entry.findings)


def _intact(data: mmap, start: int, end: int) -> bytes:
    """Return the bytes from `start` to before `end` that the file still has."""
    found = data[start:end]  # before the size, which may change
    size = intact_size(data)
    return found if size is None else found[: max(0, size - start)]


def _keep(opened: _OpenedFile, found: "list[EntryPosition]") -> None:
    opened.starts.extend([place.start for place in found])
    opened.ends.extend([place.end for place in found])
    found.clear()

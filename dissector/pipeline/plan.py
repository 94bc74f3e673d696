"""A file looked over once: what it is, what it says of itself, where reading can begin in its middle.

Invariants:
  * a range begins where the one before it ended, as the file was read from its beginning to there: so ranges together
    give the packets of the whole, damaged or not;
  * what is no capture, or can't be opened, is told and stops nobody.
"""

import hashlib
import stat
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from dissector.capture.errors import CaptureError, FilePosition, NoRoomError
from dissector.capture.files import Reader, open_capture
from dissector.capture.partition import HEAD
from dissector.core.finding import Finding, Severity
from dissector.core.store import Store
from dissector.storage import KafkaFiles

RANGE: Final = 64 << 20
"""Bytes of a range of a large file, about."""
READ: Final = 1 << 22
"""Bytes that are hashed at a time."""
Between = Callable[[], None]
"""What is called every few megabytes."""


class Range(NamedTuple):
    """Some of a file's packets, one behind the other."""

    first: int
    """The number of its first packet in the file."""
    packets: int
    mark: bytes
    """What reading from here on needs to know; empty for a file that is read from its beginning."""


@dataclass
class Plan:
    """Of one file."""

    path: str
    digest: str = ""
    """SHA-256 of its bytes: what it is called in tables."""
    size: int = 0
    packets: int = 0
    """Or entries, of one of Kafka's own files."""
    dealt: int = 0
    """Bytes of its packets as blocks, whatever they take in the file: it may be compressed."""
    first_ns: int = 0
    """Of its packets' times the first, and the latest; 0 where there are none."""
    latest_ns: int = 0
    earliest_ns: int = 0
    link_types: list[int] = field(default_factory=list)
    has_times: bool = True
    """Whether its packets can be put among those of others."""
    is_stored: bool = False
    """Whether it has no packets, but is one of Kafka's own files."""
    ranges: list[Range] = field(default_factory=list)
    problems: list[Finding] = field(default_factory=list)
    damage: list[FilePosition] = field(default_factory=list)
    left: FilePosition | None = None
    """What of a compressed file, in its own bytes, could not be decompressed."""
    unread: str = ""
    """Why all of it could not be read, where that is so."""

    @property
    def form(self) -> str:
        """What the table of captures calls it."""
        if self.unread:
            return "unread"
        return "log" if self.is_stored else "capture" if self.has_times else "hex"

    @property
    def stands_alone(self) -> bool:
        """Whether something of it is told that no other file has a part in."""
        return self.is_stored or bool(self.damage) or self.left is not None or bool(self.unread and self.digest)


def digest_of(path: str, between: Between = lambda: None) -> tuple[str, int]:
    """SHA-256 of a file, and its size. Raises `OSError`."""
    hashed, size = hashlib.sha256(), 0
    with Path(path).open("rb") as file:
        while piece := file.read(READ):
            between()
            hashed.update(piece)
            size += len(piece)
    return hashed.hexdigest(), size


def plan(path: str, size_of_range: int = RANGE, most: int | None = None, between: Between = lambda: None) -> Plan:
    """Look over a file, so many packets at a time at the `most`. What is wrong with it is in `problems`; what `between`
    raises ends it."""
    made, stored = Plan(path), KafkaFiles(show_secrets=False)
    try:
        mode = Path(path).stat().st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):  # of a pipe nothing is there to be read a second time
            raise CaptureError(f"{path}: no regular file")
        made.digest, made.size = digest_of(path, between)
        store = Store()
        reader = open_capture(path, store, stored.take)
        assert isinstance(reader, Reader)
    except OSError as error:
        _leave(made, f"{path}: {(error.strerror or str(error)).lower()}")
    except NoRoomError as error:
        made.digest = ""  # another run may read it
        _leave(made, str(error))
    except CaptureError as error:
        _leave(made, str(error))
    else:
        with closing(reader):
            _look_over(made, reader, size_of_range, most, between)
            if stored.count:
                _count(made, stored)
            store.release()
    for problem in made.problems:
        if problem.code == "not-read-on":  # there is no room: tables have all of a capture, or none of it
            made = Plan(path)
            _leave(made, problem.message)
    return made


def _look_over(made: Plan, reader: Reader, size_of_range: int, most: int | None, between: Between) -> None:
    made.has_times = reader.has_times
    links: set[int] = set()
    begun, first, mark = 0, 0, reader.mark() if reader.can_be_resumed else b""
    for batch in reader.batches(most):
        between()
        if not len(batch):
            continue
        if not made.packets:
            made.first_ns = made.earliest_ns = made.latest_ns = int(batch.time_ns[0])
        made.earliest_ns = min(made.earliest_ns, int(batch.time_ns.min()))
        made.latest_ns = max(made.latest_ns, int(batch.time_ns.max()))
        made.packets += len(batch)
        made.dealt += int(batch.captured.sum()) + HEAD * len(batch)
        links.update(np.unique(batch.link_type).tolist())
        if reader.can_be_resumed and reader.done - begun >= size_of_range:
            made.ranges.append(Range(first, made.packets - first, mark))
            begun, first, mark = reader.done, made.packets, reader.mark()
    if made.packets > first:
        made.ranges.append(Range(first, made.packets - first, mark))
    made.link_types = sorted(links)
    made.problems += reader.problems
    made.damage, made.left = reader.damaged, reader.left


def _count(made: Plan, stored: KafkaFiles) -> None:
    """Look over one of Kafka's own files."""
    for _ in stored.read():
        pass
    made.is_stored = True
    made.packets = len(stored)
    if made.packets:
        ends = [stored.exchange(number).row.time_ns for number in (0, made.packets - 1)]
        made.first_ns, (made.earliest_ns, made.latest_ns) = ends[0], sorted(ends)
    made.problems += stored.problems
    made.damage = stored.damage


def _leave(made: Plan, words: str) -> None:
    made.unread = words
    made.problems = [Finding("not-a-capture", Severity.ERROR, words)]

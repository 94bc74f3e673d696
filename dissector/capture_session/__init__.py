"""A capture, opened: its index filled as it is read, its exchanges decoded on demand.

`Capture.read` drives everything; each step takes one batch of packets all the way down. Faces (command line, screen)
talk to this class alone. It is made of layers, a file each: `Opened` wires the stages, `Reading` fills the index,
`Indexed` has its columns, `Decoding` its exchanges, `Examining` what several rows tell, `Carrying` puts it down and
takes it up again; here is what filters choose.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dissector.capture_session.checkpointing import Carrying
from dissector.capture_session.indexed import Span
from dissector.capture_session.reading import Progress
from dissector.core.arrays import Int64
from dissector.exchange.model import Exchange

if TYPE_CHECKING:  # who has no filter does not pay for importing what parses one
    from dissector.exchange.index_rows import IndexRows
    from dissector.filter import Filter
    from dissector.filter.selection import Selected

__all__ = ["Capture", "Int64", "Progress", "Span"]


class Capture(Carrying):
    """One capture of one or more files, in the order of time. Opening reads the files' beginnings only.

    Secrets (passwords, tokens, keys) are masked unless asked for. `asked` is the API key and version that a response
    answers whose request is not there; hex without marks is then the server's. On `ports` Kafka's servers are, whatever
    the content says: but TLS is told. `topics` are names of topic ids that were told elsewhere. Raises
    `capture.CaptureError` where a file can't be opened, with one plain line.
    """

    def exchanges(self, filter: str | None = None) -> Iterator[Exchange]:
        """All exchanges in order, or those that fit a filter, reading the capture first if nobody has.

        Raises `analysis.filter.FilterError` at once, before anything is read."""
        if filter is None:
            self._read_all()
            return self.between(0, len(self))
        from dissector.filter import parse

        wanted = parse(filter)
        self._read_all()
        for _ in self.examine() if wanted.asks_findings else ():
            pass
        return (exchange for found in self.select(wanted) for exchange in self.at(found.rows))

    def _read_all(self) -> None:
        if not self._finished:
            for _ in self.read():
                pass

    def select(self, filter: "Filter", start: int = 0, stop: int | None = None) -> "Iterator[Selected]":
        """The rows from `start` to before `stop`, or to the last one that there is now, that fit a filter, from 0 and
        ascending: in short steps, decoded on demand. Rows that are not complete yet may fit later: see `matching`."""
        from dissector.filter.selection import select

        return select(filter, self, start, len(self) if stop is None else min(stop, len(self)))

    def matching(self, filter: "Filter", rows: Int64) -> Int64:
        """Which of these rows, from 0 and ascending, fit a filter as they are now."""
        from dissector.filter.selection import matching

        return matching(filter, self, rows)

    def index_rows(self, rows: range | Int64) -> "tuple[int, IndexRows]":
        """How many of these rows, which stand first, are entries of files; and the others as columns of the index."""
        from dissector.exchange.index_rows import IndexRows

        stored, indexed = self._parted(rows)
        columns = IndexRows(
            self._session, self._lookup, indexed, self, self.start_ns, len(self._files), self._files.count
        )
        return len(stored), columns

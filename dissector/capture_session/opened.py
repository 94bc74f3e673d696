"""A capture's files opened, and the stages wired together; what the files and their packets say of themselves."""

import threading
from collections.abc import Mapping, Sequence, Set
from types import TracebackType
from typing import Final, Self

import numpy as np

from dissector.capture.files import Following, make_room, open_capture
from dissector.capture.merge import Merged
from dissector.capture.partition import CapturePartition
from dissector.capture_session.checkpoint import restore
from dissector.capture_session.tally import CaptureTally
from dissector.core import limits
from dissector.core.finding import Finding
from dissector.core.store import Store
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.listing import Listing
from dissector.framing import Framer
from dissector.index.indexer import Indexer
from dissector.index.shared_state import SharedState
from dissector.storage import KafkaFiles
from dissector.transport import Transport
from dissector.transport.partitions import Partition

ELSEWHERE: Final = 1 << 62
"""Behind all packets: what was learned elsewhere holds where none of them says otherwise."""


class Opened:
    """Opening reads the files' beginnings only. Raises `capture.CaptureError` where a file can't be opened."""

    def __init__(
        self,
        paths: Sequence[str | Following | CapturePartition],
        bounds: limits.Limits = limits.DEFAULT,
        *,
        asked: tuple[int, int] | None = None,
        ports: Set[int] = frozenset(),
        topics: Mapping[str, str] | None = None,
        show_secrets: bool = False,
        carried: bytes = b"",
    ) -> None:
        before = restore(carried) if carried else None
        self._store = Store() if before is None else before.store
        self._files = KafkaFiles(show_secrets=show_secrets)
        """What has no packets: its rows come before those of exchanges."""
        make_room(len(paths))
        self._readers = [
            open_capture(path, self._store, self._files.take, unmarked_from_client=asked is None, limits=bounds)
            for path in paths
        ]
        self._merged = Merged(self._readers, self._store, bounds)
        if before is not None:
            self._transport, self._session = before.transport, before.session
            self._splitter, self._lookup = before.splitter, before.lookup
        else:
            self._transport = Transport(self._store, bounds, _share(paths))
            self._session = Indexer(self._store, self._transport.flows, bounds, ports)
            self._splitter = Framer(self._store, self._session.recogniser, bounds)
            self._lookup = ExchangeDecoder(
                self._session, self._store, self._transport.flows, self._splitter.ignored, asked,
                show_secrets=show_secrets,
            )  # fmt: skip
        self._session.knowledge.take(
            SharedState(topics={each: (ELSEWHERE, name) for each, name in (topics or {}).items()})
        )
        self._examination = before.examination if before is not None else None
        self._unsettled = before.unsettled if before is not None else np.zeros(0, np.int64)
        """Rows that were not settled when somebody took those that were; and from which row on nobody looked."""
        self._looked_upto = before.looked_upto if before is not None else 0
        self._listing = Listing(self._session, self._lookup)
        self.bounds = bounds
        self.ports = ports
        self.names = [
            path.path if isinstance(path, Following) else path.name if isinstance(path, CapturePartition) else path
            for path in paths
        ]
        self.comments: dict[int, str] = {}
        """What somebody wrote on packets, by the packet's number."""
        self.problems: list[Finding] = []
        """What is wrong with the files themselves, and which packets could not be looked into."""
        self.tally = CaptureTally()
        """The same of a capture that is read, as counts."""
        self._finished = False
        self._lock = threading.Lock()
        """Rows change their places once, at the end of reading, while a screen may look at them."""
        self._examining = threading.Lock()
        """Whoever does a step of the examination holds it."""
        self.packets = before.packets if before is not None else 0
        self.start_ns = before.start_ns if before is not None else 0
        """Time of the first packet."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files. Exchanges that were decoded before stay readable."""
        self._store.release()
        self._merged.close()
        for reader in self._readers:
            reader.close()

    def __len__(self) -> int:
        return len(self._files) + len(self._session.table)

    @property
    def is_read(self) -> bool:
        """Whether all is read."""
        return self._finished

    @property
    def grows(self) -> bool:
        """Whether packets come when they like, from a pipe or from who captures them."""
        return any(reader.grows for reader in self._readers)

    @property
    def total(self) -> int:
        """Bytes of all files; 0 where one of them has no end yet."""
        return 0 if self.grows else sum(reader.total for reader in self._readers)

    @property
    def done(self) -> int:
        """Bytes of all files that are read."""
        return sum(reader.done for reader in self._readers)

    @property
    def remarks(self) -> list[str]:
        """What somebody wrote on the capture as a whole, or on its interfaces."""
        return [text for reader in self._readers if reader.notes for text in reader.notes.remarks]

    @property
    def host_names(self) -> dict[str, list[str]]:
        """What the files say that hosts are called, by address."""
        return {
            address: names for reader in self._readers if reader.notes for address, names in reader.notes.names.items()
        }

    @property
    def connections(self) -> int:
        """TCP connections seen, of any protocol."""
        return len(self._transport.flows)

    @property
    def protocols(self) -> dict[str, int]:
        """How many connections speak what, by the protocol's name, the most frequent first.

        ``{"TLS": 12, "Kafka": 3}``; "unknown" are those with data that tells nothing, "without data" those without."""
        return self._session.recogniser.protocols()

    @property
    def ignored(self) -> dict[str, int]:
        """Packets that are not TCP, or could not be read, by reason."""
        return self._transport.ignored


def _share(paths: Sequence[str | Following | CapturePartition]) -> Partition | None:
    """What a part of a capture has of it, which is read by itself."""
    match paths:
        case [CapturePartition(number=number, of=of)]:
            return Partition(number, of)
    return None

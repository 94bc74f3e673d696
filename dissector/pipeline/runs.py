"""Runs of ingest: each has an epoch, and a folder for what it writes for itself.

Any number of runs may write to a storage at a time: each knows its files by itself, and rows count only if `captures`
says so. What a killed run leaves behind, rows that do not count and copies of packets, is removed by a later run: at
once if the process was one of this host and is gone, otherwise after `ABANDONED_SECONDS`.
"""

import os
import socket
import time
from typing import Final, NamedTuple, Self

from dissector.tables.delta_log import delta_table, file_paths, remove_epoch
from dissector.tables.schemas import FACT_TABLES
from dissector.tables.storage import RUNS, Storage

ABANDONED_SECONDS: Final = 86_400.0
"""Age of a run that nobody works on any more, unless it is known to be at work."""


class Run(NamedTuple):
    """One run."""

    epoch: int
    """When it began, microseconds since 1970; two runs of the same microsecond would be one."""
    host: str
    process: int

    @classmethod
    def new(cls) -> Self:
        """Return a run of this process."""
        return cls(time.time_ns() // 1_000, socket.gethostname(), os.getpid())

    @property
    def folder(self) -> str:
        """Its folder, relative to the storage."""
        return f"{RUNS}/{self.epoch}-{self.process}-{self.host}"

    @classmethod
    def named(cls, name: str) -> Self | None:
        """Return the run of a folder; None if it is no run's."""
        epoch, _, rest = name.partition("-")
        process, _, host = rest.partition("-")
        return cls(int(epoch), host, int(process)) if epoch.isdecimal() and process.isdecimal() else None

    @property
    def is_abandoned(self) -> bool:
        """Whether its process is gone."""
        if self.host == socket.gethostname():
            try:
                os.kill(self.process, 0)
            except ProcessLookupError:
                return True
            except (PermissionError, OverflowError):
                return False
            return False
        return time.time() - self.epoch / 1e6 > ABANDONED_SECONDS


def remove_abandoned(storage: Storage) -> None:
    """Remove what abandoned runs left behind. Raises `StorageError`."""
    for run in runs_of(storage):
        if run.is_abandoned:
            remove_run(storage, run)


def runs_of(storage: Storage) -> list[Run]:
    """Return the runs that have a folder."""
    return [run for name in storage.folders(RUNS) if (run := Run.named(name)) is not None]


def remove_run(storage: Storage, run: Run) -> None:
    """Remove what a run wrote, unless its captures are committed. Raises `StorageError`."""
    for name in FACT_TABLES:
        table = delta_table(storage.uri, name)
        committed = set() if table is None else set(file_paths(table))
        for file in storage.files(name):
            if file.startswith(f"{run.epoch}-") and file not in committed:
                storage.remove_file(f"{name}/{file}")
    remove_epoch(storage.uri, run.epoch)
    storage.remove(run.folder)

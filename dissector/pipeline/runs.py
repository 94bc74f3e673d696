"""What runs of ingest leave behind.

Any number of runs may write to a storage at a time: each knows its files by itself, and rows count only if `captures`
says so. What a killed run leaves behind, rows that do not count and copies of packets, is removed by a later run: at
once if the process was one of this host and is gone, otherwise after a day.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from dissector.tables.delta_log import delta_table, file_paths, remove_epoch
from dissector.tables.run import RUNS, Run
from dissector.tables.schemas import FACT_TABLES
from dissector.tables.storage import Storage, StorageError


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


@contextmanager
def remove_runs_afterwards(out: str) -> Iterator[None]:
    """Remove what this process's runs left behind. Exit this context after Spark has ended: canceled tasks still write
    for a short time."""
    try:
        yield
    finally:
        mine = Run.new()
        with suppress(StorageError):  # a later run removes it
            storage = Storage(out)
            for run in runs_of(storage):
                if run[1:] == mine[1:]:
                    remove_run(storage, run)

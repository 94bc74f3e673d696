"""Whether a store keeps what Delta's log relies on: of several commits of one version, one succeeds.

For that a store must refuse to replace an object (`If-None-Match`). One that ignores it loses commits, and their rows,
when two ingests commit at a time. The library looks at the log before it commits, so only commits at the very same
time show it: several threads make them.

Invariants:
  * a store that keeps it is never refused;
  * what a killed probe leaves behind is removed like what a killed run does.

A store that does not is found if two commits overlap. In 55 of 55 rounds with moto they did, but with a store on
loopback and a busy machine they may follow one another: hence several rounds.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError

from dissector.tables.file_systems import delta_options, delta_uri, opened
from dissector.tables.run import Run

ROUNDS: Final = 4
COMMITS: Final = 4
"""At a time."""
_SCHEMA: Final = pa.schema([("number", pa.int64())])


def loses_commits(uri: str) -> bool:
    """Return whether a store accepts two commits of one version. Raises `DeltaError`, or one of `ERRORS`."""
    probe = f"{uri}/{Run.new().folder}"
    try:
        DeltaTable.create(delta_uri(probe), _SCHEMA, storage_options=delta_options(uri))
        return any(_successes(uri, probe) > 1 for _ in range(ROUNDS))
    finally:
        files, path = opened(probe)
        files.delete_dir(path)


def _successes(uri: str, probe: str) -> int:
    """Return how many of the commits at one time succeed."""
    tables = [DeltaTable(delta_uri(probe), storage_options=delta_options(uri)) for _ in range(COMMITS)]
    together = threading.Barrier(COMMITS)

    def succeeds(table: DeltaTable) -> bool:
        together.wait()
        try:
            table.create_write_transaction(
                [], "append", _SCHEMA, commit_properties=CommitProperties(max_commit_retries=0)
            )
        except DeltaError:
            return False
        return True

    with ThreadPoolExecutor(COMMITS) as pool:
        return sum(pool.map(succeeds, tables))

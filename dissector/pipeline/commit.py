"""From what was staged to where it belongs: all of it or nothing, whenever somebody stops.

A stage holds tables as they are to be (`TABLE/day=…/capture=…/*.parquet`), what is left of each part (`left-BATCH/`)
and the state (`committed`). The file `complete` says that it is whole.

Invariant: a stage that is complete ends up in place however often the way there is broken off, each file once; one that
is not leaves nothing. `captures` comes last of the tables: it says what is there.
"""

import shutil
from pathlib import Path
from typing import Final

from dissector.pipeline.table_schemas import PARTITION_TABLES

FOLLOWER: Final = "_follow"
"""Beside the tables: what goes on from one micro-batch to the next."""
STAGE: Final = "stage"
COMPLETE: Final = "complete"
COMMITTED: Final = "committed"
CARRY_OVER: Final = "left-"


def carry_over_folder(batch: int) -> str:
    """The folder of what a micro-batch left of each part."""
    return f"{CARRY_OVER}{batch}"


def commit_staged(folder: Path) -> None:
    """Bring what was staged in a folder as a whole to the tables beside it, or drop it."""
    stage = folder / STAGE
    if (stage / COMPLETE).exists():
        for name in (*PARTITION_TABLES, "captures"):
            for file in sorted((stage / name).rglob("*.parquet")):
                target = folder.parent / file.relative_to(stage)
                target.parent.mkdir(parents=True, exist_ok=True)
                file.rename(target)
        for left in stage.glob(f"{CARRY_OVER}*"):
            left.rename(folder / left.name)
        if (stage / COMMITTED).exists():
            (stage / COMMITTED).replace(folder / COMMITTED)
        everything = sorted(folder.glob(f"{CARRY_OVER}*"), key=lambda left: int(left.name.removeprefix(CARRY_OVER)))
        for old in everything[:-1]:
            shutil.rmtree(old)
        (stage / COMPLETE).unlink()
    shutil.rmtree(stage, ignore_errors=True)

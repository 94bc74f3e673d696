"""Commits a staged micro-batch: completely or not at all, whenever the process dies.

The staging folder holds files of tables (`TABLE/day=…/capture=…/*.parquet`), the carry-over of each partition
(`carry-over-BATCH/`) and the follower's state (`committed`). The file `complete` marks it as complete.

Invariant: a complete staging folder ends up in place, each file once, however often the commit is interrupted; an
incomplete one is dropped. `captures` is the last table to be committed, as it makes captures visible.
"""

import shutil
from pathlib import Path
from typing import Final

from dissector.pipeline.table_schemas import PARTITION_TABLES

FOLLOWER: Final = "_follow"
"""The follower's folder beside the tables: state from one micro-batch to the next."""
STAGE: Final = "stage"
COMPLETE: Final = "complete"
COMMITTED: Final = "committed"
CARRY_OVER: Final = "carry-over-"


def carry_over_folder(batch: int) -> str:
    """Return the name of the folder with the carry-overs of a micro-batch."""
    return f"{CARRY_OVER}{batch}"


def commit_staged(folder: Path) -> None:
    """Move a complete staging folder to the tables beside it, or drop an incomplete one."""
    stage = folder / STAGE
    if (stage / COMPLETE).exists():
        for name in (*PARTITION_TABLES, "captures"):
            for file in sorted((stage / name).rglob("*.parquet")):
                target = folder.parent / file.relative_to(stage)
                target.parent.mkdir(parents=True, exist_ok=True)
                file.rename(target)
        for carry_over in stage.glob(f"{CARRY_OVER}*"):
            carry_over.rename(folder / carry_over.name)
        if (stage / COMMITTED).exists():
            (stage / COMMITTED).replace(folder / COMMITTED)
        carry_overs = folder.glob(f"{CARRY_OVER}*")
        for old in sorted(carry_overs, key=lambda path: int(path.name.removeprefix(CARRY_OVER)))[:-1]:
            shutil.rmtree(old)
        (stage / COMPLETE).unlink()
    shutil.rmtree(stage, ignore_errors=True)

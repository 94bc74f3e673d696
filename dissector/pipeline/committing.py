"""From what was staged to where it belongs: all of it or nothing, whenever somebody stops.

A stage holds tables as they are to be (`TABLE/day=…/capture=…/*.parquet`), what is left of each part (`left-BATCH/`)
and the state (`committed`). The file `complete` says that it is whole.

Invariant: a stage that is complete ends up in place however often the way there is broken off, each file once; one that
is not leaves nothing. `captures` comes last of the tables: it says what is there.
"""

import shutil
from pathlib import Path
from typing import Final

from dissector.pipeline.tables import OF_PARTS

FOLLOWER: Final = "_follow"
"""Beside the tables: what goes on from one micro-batch to the next."""
STAGE: Final = "stage"
COMPLETE: Final = "complete"
COMMITTED: Final = "committed"
LEFT: Final = "left-"


def left_of(batch: int) -> str:
    """The folder of what a micro-batch left of each part."""
    return f"{LEFT}{batch}"


def put_in_place(folder: Path) -> None:
    """Bring what was staged in a folder as a whole to the tables beside it, or drop it."""
    stage = folder / STAGE
    if (stage / COMPLETE).exists():
        for name in (*OF_PARTS, "captures"):
            for file in sorted((stage / name).rglob("*.parquet")):
                target = folder.parent / file.relative_to(stage)
                target.parent.mkdir(parents=True, exist_ok=True)
                file.rename(target)
        for left in stage.glob(f"{LEFT}*"):
            left.rename(folder / left.name)
        if (stage / COMMITTED).exists():
            (stage / COMMITTED).replace(folder / COMMITTED)
        everything = sorted(folder.glob(f"{LEFT}*"), key=lambda left: int(left.name.removeprefix(LEFT)))
        for old in everything[:-1]:
            shutil.rmtree(old)
        (stage / COMPLETE).unlink()
    shutil.rmtree(stage, ignore_errors=True)

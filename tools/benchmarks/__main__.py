"""`python -m tools.benchmarks [SECTION…]`: what `kdissect` costs, beside its peers where it has any, all in one run.

Sections: ``speed`` (kdissect and tshark over the same captures, in turn), ``start`` (how soon the first word comes),
``growth`` (tenfold work), ``memory`` (1 GB; every command over 90 MB), ``screen`` (1 GB on the screen: first rows, key
to paint), ``readers`` (messages one by one, records and all real frames in columns, beside two Python libraries),
``filter`` (a million rows, and tshark's filters), ``diff`` (100,000 exchanges a side),
``hostile`` (every command over inputs made to cost much: the worst of each), ``tls`` (the same frames plain and
encrypted),
``tables`` (three mixes to tables, and commands on these, beside `show --format json`),
``spark`` (small work with tables; 1 GB to tables on one core and two, beside show and tshark; half an hour alone;
``spark=100,1000,10000`` for other sizes in megabytes).
All take about an hour, most of it ``memory``; `make bench BENCH="speed start"` runs some. `make bench BEFORE=FOLDER`
measures `stats` in an earlier version too: `git worktree add FOLDER COMMIT` makes one. Live capture is measured apart,
as root: `python -m tools.benchmarks.live`.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tools.benchmarks import commands, diff, growth, memory, readers, screen, spark, speed, start, tables, tls
from tools.benchmarks import filter as filters
from tools.benchmarks.measuring import machine

SECTIONS: Final[dict[str, Callable[[Path], None]]] = {
    "speed": speed.main,
    "start": start.main,
    "growth": growth.main,
    "memory": memory.main,
    "screen": screen.main,
    "readers": lambda folder: readers.main(),
    "filter": filters.main,
    "diff": diff.main,
    "tables": tables.beside_captures,
    "spark": spark.main,
    "hostile": commands.main,
    "tls": tls.main,
}


def main(sections: list[str]) -> None:
    """Run the given sections, or all, each in a temporary folder."""
    chosen = [section.partition("=") for section in sections or SECTIONS]
    unknown = [name for name, _, _ in chosen if name not in SECTIONS]
    if unknown:
        raise SystemExit(f"no section {unknown[0]!r}: there are {', '.join(SECTIONS)}")
    sized = [name for name, _, sizes in chosen if sizes and name != "spark"]
    if sized:
        raise SystemExit(f"{sized[0]} has no sizes: only spark has them")
    print(machine())
    for name, _, sizes in chosen:
        with tempfile.TemporaryDirectory() as folder:
            if sizes:
                spark.main(Path(folder), [int(size) for size in sizes.split(",")])
            else:
                SECTIONS[name](Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])

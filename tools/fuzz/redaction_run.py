"""`python -m tools.fuzz.redaction_run [--minutes M] [--seed S]`: changed recordings, redacted, until the time is up.

One case in `RARE` is exported as text too, and with each case `FRAMES` changed frames are redacted on their own. The
exit code is 1 if a piece of a name was left; its capture is written into the current folder. Case `n` of seed `s` is
the same on every machine.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

from dissector.capture import CaptureError
from tools.fuzz.lettered import conversations
from tools.fuzz.redactions import left_in_frames, left_of_names, redaction_file

RARE: Final = 10
FRAMES: Final = 50
TOGETHER: Final = 20
"""Cases of one conversation: reading it takes as long as some of them."""


def run(seed: int, minutes: float, first: int, folder: Path) -> Counter[str]:
    """Return how many cases there were, by what became of them."""
    counts: Counter[str] = Counter()
    path, until, number = folder / "names.pcap", time.monotonic() + 60 * minutes, first
    while time.monotonic() < until:
        chance = random.Random(f"{seed} {number}")
        name = random.Random(f"{seed} {number // TOGETHER}").choice(conversations())
        data, names = redaction_file(chance, name)
        path.write_bytes(data)
        try:
            found = left_of_names(path, names, texts=number % RARE == 0)
            counts["cases"] += 1
        except CaptureError:
            counts["not read"] += 1
            found = ""
        in_frames = left_in_frames(chance, FRAMES, name)
        counts["frames"] += FRAMES
        if in_frames:
            counts["hits"] += 1
            print(f"case {number} of seed {seed}: {in_frames}", flush=True)
        if found:
            counts["hits"] += 1
            print(f"case {number} of seed {seed}: {found}", flush=True)
            (Path.cwd() / f"left-{seed}-{number}.pcap").write_bytes(data)
        number += 1
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz.redaction_run", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="the same seed makes the same cases")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        counts = run(given.seed, given.minutes, given.first, Path(folder))
    print(", ".join(f"{count:,} {what}" for what, count in counts.items()), f"{time.process_time():.0f} s CPU")
    sys.exit(bool(counts["hits"]))


if __name__ == "__main__":
    main()

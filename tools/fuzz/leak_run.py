"""`python -m tools.fuzz.leak_run [--minutes M] [--seed S]`: changed conversations with secrets, until the time is over.

Every recording with a secret in turn, and ones made: seven in ten. Each is read in one process and searched in the
usual faces; one in `RARE` in those that cost more, one in `ON_SCREEN` on the screen. The exit code is 1 if a secret was
shown; case `n` of seed `s` is the same on every machine.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter, deque
from pathlib import Path
from typing import Final

from dissector.capture import CaptureError
from dissector.capture_session import Capture
from tools.fuzz.leaks import leak, rare_faces, screen_faces
from tools.fuzz.logins import login_file, recording_changed, recordings, segment_file

RARE: Final = 10
ON_SCREEN: Final = 100
RECORDED: Final = 0.3
SEGMENTS: Final = 0.05
"""How many of those that are made are log segments."""


def run(seed: int, minutes: float, first: int, folder: Path) -> Counter[str]:
    """Return how many cases there were, by what was done with them."""
    counts: Counter[str] = Counter()
    path, until, number = folder / "login.pcap", time.monotonic() + 60 * minutes, first
    recorded = recordings()
    while time.monotonic() < until:
        chance = random.Random(f"{seed} {number}")
        is_recorded = chance.random() < RECORDED
        if is_recorded:
            data, secrets = recording_changed(recorded[counts["recorded"] % len(recorded)], chance)
        else:
            is_segment = chance.random() < SEGMENTS
            data, secrets = segment_file(chance) if is_segment else login_file(chance, recorded=0)
        counts["recorded" if is_recorded else "made"] += 1
        path.write_bytes(data)
        ways = [rare_faces] if number % RARE == 0 else []
        ways += [screen_faces] if number % ON_SCREEN == 0 else []
        try:
            with Capture([str(path)]) as capture:
                deque(capture.read(), maxlen=0)
                counts["rows"] += len(capture)
                found = leak(capture, secrets, *ways)
        except CaptureError:
            counts["not read"] += 1
            found = ""
        counts.update(way.__name__ for way in ways)
        if found:
            counts["hits"] += 1
            print(f"case {number} of seed {seed}: {found}", flush=True)
            (Path.cwd() / f"leak-{seed}-{number}.pcap").write_bytes(data)
        number += 1
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz.leak_run", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="the same seed makes the same cases")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    given = parser.parse_args()
    print(f"seed {given.seed}, {len(recordings())} recordings", flush=True)
    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_STATE_HOME"] = folder
        counts = run(given.seed, given.minutes, given.first, Path(folder))
    print(
        ", ".join(f"{count:,} {what}" for what, count in counts.items()), f"{time.process_time() - started:.0f} s CPU"
    )
    sys.exit(bool(counts["hits"]))


if __name__ == "__main__":
    main()

"""`kdissect` as on a machine with two cores, where each comparison of two captures is worth two processes. The first
word says what befalls the second one."""

import os
import signal
import sys
import time

from dissector.capture_session import Capture
from dissector.cli import side_process
from dissector.cli.main import main


def befall(what: str, capture: Capture) -> list[str]:
    """In place of `problems_of`, which the second process alone calls."""
    if what == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "mistaken":
        raise ValueError("a mistake")
    print("waiting", file=sys.stderr, flush=True)
    time.sleep(600)
    return []


if __name__ == "__main__":
    side_process.pays = lambda a, b: a is not b
    befalls = sys.argv.pop(1)
    if befalls != "nothing":
        vars(side_process)["problems_of"] = lambda capture: befall(befalls, capture)
    main()

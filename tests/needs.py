"""What a test needs and a machine may lack: it is skipped with one plain line, and in CI that line must be a known one.

Invariants:
  * every skip of the suite has a reason that `excused` knows, or it fails a run in CI;
  * a program is excused in CI only where `.ci/run` hid it or could not install it, and says so in TESTS_LACK.
"""

import os
import re
import shutil
from typing import Final

import pytest

EXCUSED: Final = (
    r"NOT TESTED live: this user may not capture \(CAP_NET_RAW\)",
    r"NOT TESTED on an interface: .+",
    r"NOT TESTED on a full disk: this user may not mount one",
    r"NOT TESTED with Java's client: .+",
)
"""Reasons that lie in the rights of a machine, which no package changes; and in jars, as no test fetches any."""


def needs(*programs: str) -> None:
    """Skip the test that asks, if one of these programs is not installed."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"NOT TESTED with {program}: it is not installed")


def excused(reason: str) -> bool:
    """Whether a test may be skipped in CI for this reason."""
    lacking = [f"NOT TESTED with {re.escape(program)}: .+" for program in os.environ.get("TESTS_LACK", "").split()]
    return any(re.fullmatch(known, reason) for known in (*EXCUSED, *lacking))

"""What a test needs and a machine may lack: it is skipped with one plain line, and in CI that line must be a known one.

Invariants:
  * every skip of the suite has a reason that `excused` knows, or it fails a run in CI;
  * a program is excused in CI only where `.ci/run` hid it or could not install it, and says so in TESTS_LACK.
"""

import os
import re
import shutil
from importlib.util import find_spec
from typing import Final

import pytest

EXCUSED: Final = (
    r"NOT TESTED live: this user may not capture \(CAP_NET_RAW\)",
    r"NOT TESTED on an interface: .+",
    r"NOT TESTED as another user: .+",
    r"NOT TESTED on a full disk: this user may not mount one",
    r"NOT TESTED with Java's client: .+",
)
"""Reasons that lie in the rights of a machine, which no package changes; and in jars, as no test fetches any."""


as_another_user: Final = pytest.mark.skipif(
    os.geteuid() != 0, reason="NOT TESTED as another user: this user can't become one"
)
"""Of a test that runs something as another user."""


def needs(*programs: str) -> None:
    """Skip the test that asks, if one of these programs is not installed."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"NOT TESTED with {program}: it is not installed")


def needs_spark() -> None:
    """Skip the test that asks, if Spark is not installed."""
    needs("java")
    if find_spec("pyspark") is None:
        pytest.skip("NOT TESTED with pyspark: it is not installed")


def excused(reason: str) -> bool:
    """Whether a test may be skipped in CI for this reason."""
    lacking = [f"NOT TESTED with {re.escape(program)}: .+" for program in os.environ.get("TESTS_LACK", "").split()]
    return any(re.fullmatch(known, reason) for known in (*EXCUSED, *lacking))

"""Trees are kept out of garbage collections; cycles are collected all the same."""

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tui.threads import gc_paused


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    gc.enable()


def test_nothing_is_collected_until_the_last_pause_ends() -> None:
    with gc_paused():
        with pytest.raises(ValueError, match="broken"), gc_paused():
            raise ValueError("broken")
        assert not gc.isenabled()
    assert gc.isenabled()


PROGRAM = """
import gc, weakref
from tui.threads import freeze_objects, unfreeze_objects

class Ring:
    def __init__(self):
        self.me = self

ring = Ring()
alive = weakref.ref(ring)
freeze_objects()
del ring
gc.collect()
assert alive() is not None
unfreeze_objects()
gc.collect()
assert alive() is None
"""
"""For a new process: a collection of all objects of a test process takes a second."""


@pytest.mark.long
@pytest.mark.slow
def test_a_frozen_cycle_is_collected_once_unfrozen() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=Path(__file__).parents[2], check=True)

"""Trees are kept out of garbage collections; cycles are collected all the same."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from tui.garbage_collection import freeze_objects, gc_paused, unfreeze_objects


class Ring:
    """A cycle by itself."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    unfreeze_objects()
    gc.enable()


def test_nothing_is_collected_until_the_last_pause_ends() -> None:
    with gc_paused():
        with pytest.raises(ValueError, match="broken"), gc_paused():
            raise ValueError("broken")
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_frozen_cycle_is_collected_once_unfrozen() -> None:
    ring = Ring()
    alive = weakref.ref(ring)
    freeze_objects()
    del ring
    gc.collect()
    assert alive() is not None
    unfreeze_objects()
    gc.collect()
    assert alive() is None

"""Trees are kept from the search for cycles; cycles are found all the same."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from tui.garbage import no_collections, set_aside, take_back


class Ring:
    """A cycle by itself."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    take_back()
    gc.enable()


def test_nothing_is_gone_through_until_the_last_one_is_done() -> None:
    with no_collections():
        with pytest.raises(ValueError, match="broken"), no_collections():
            raise ValueError("broken")
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_cycle_that_was_set_aside_is_found_when_it_is_taken_back() -> None:
    ring = Ring()
    alive = weakref.ref(ring)
    set_aside()
    del ring
    gc.collect()
    assert alive() is not None
    take_back()
    gc.collect()
    assert alive() is None

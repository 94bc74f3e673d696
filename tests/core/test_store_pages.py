"""Which reads of mapped files release their pages: those that have made as many resident as may be."""

import mmap
from collections.abc import Callable

import numpy as np
import pytest

from dissector.core.store import FAULT, RESIDENT, Store
from tests.cases import cases

PAGES = RESIDENT // FAULT


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[Store, list[int]]]:
    """A store of a map with nothing in it, and a list that gets longer when pages are released."""
    calls: list[int] = []
    release = Store.release_pages

    def counted(store: Store) -> None:
        calls.append(1)
        release(store)

    def made() -> tuple[Store, list[int]]:
        store = Store()
        store.add(memoryview(mmap.mmap(-1, 4 * RESIDENT)))
        return store, calls

    monkeypatch.setattr(Store, "release_pages", counted)
    return made


@cases(("step", "count", "is_released"), [
    (FAULT, PAGES - 1, False), (FAULT, PAGES + 1, True), (10 * FAULT // 4, PAGES - 1, False),
    (10, 100 * PAGES, False),  # side by side: few pages, however many reads
])  # fmt: skip
def test_reads_count_the_pages_that_they_take(
    released: Callable[[], tuple[Store, list[int]]], step: int, count: int, is_released: bool
) -> None:
    store, calls = released()
    before = len(calls)
    for at in range(count):
        store.read(at * step, 1)
    assert (len(calls) > before) == is_released


@cases(("addresses", "is_released"), [
    (np.arange(100 * PAGES), False), (np.arange(PAGES - 2) * 3 * FAULT, False),
    (np.arange(PAGES + 1) * 3 * FAULT, True),
    (np.zeros(10 * PAGES, np.int64), False), (np.zeros(0, np.int64), False),
])  # fmt: skip
def test_reads_of_many_count_the_pages_that_they_take(
    released: Callable[[], tuple[Store, list[int]]], addresses: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    is_released: bool,
) -> None:  # fmt: skip
    for read in (
        lambda store: store.gather(addresses, 1),
        lambda store: store.join(addresses, np.ones(len(addresses), np.int64)),
        lambda store: store.pointers(addresses, np.ones(len(addresses), np.int64)),
    ):
        store, calls = released()
        before = len(calls)
        read(store)
        assert (len(calls) > before) == is_released


def test_a_read_that_releases_pages_is_counted_itself(
    released: Callable[[], tuple[Store, list[int]]],
) -> None:
    store, calls = released()
    addresses = np.arange(PAGES - 2) * FAULT
    before = len(calls)
    for expected in (0, 1, 2):
        store.pointers(addresses, np.ones(len(addresses), np.int64))
        assert len(calls) - before == expected

"""Where memory is tight, reads of mapped files release pages that would be too many, and take few at once."""

import ctypes
import mmap
from collections.abc import Callable

import numpy as np
import pytest

from dissector.core import store as store_module
from dissector.core.store import COPIED, FAULT, RESIDENT, Store
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
    monkeypatch.setattr(store_module, "is_tight", lambda more=0: True)
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


PATTERN = bytes(range(251)) * (4 * RESIDENT // 251 + 1)
FAR = np.arange(4 * PAGES - 1) * FAULT
"""Four times as many pages as may be resident."""
NEAR = np.arange(1000) * 3


@pytest.fixture
def most_resident(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that gets the pages that each read copies together."""
    found: list[int] = []
    count = Store._count

    def counted(store: Store, addresses: "np.ndarray[tuple[int], np.dtype[np.int64]]", size: int) -> None:
        found.append(len(np.unique(addresses // FAULT)))
        count(store, addresses, size)

    monkeypatch.setattr(Store, "_count", counted)
    return found


@cases(("addresses", "width", "is_tight", "is_apart"), [
    (FAR, 7, True, True), (FAR[::-1], 7, True, True), (np.tile(FAR[::2], 3), 7, True, True),
    (FAR, 7, False, False), (NEAR, 7, True, False), (FAR[: PAGES - 1], 7, True, False),
    (FAR, COPIED // len(FAR), True, True), (FAR[:0], 7, True, False),
])  # fmt: skip
def test_what_lies_far_apart_is_copied_some_pages_at_a_time(
    monkeypatch: pytest.MonkeyPatch, most_resident: list[int],
    addresses: "np.ndarray[tuple[int], np.dtype[np.int64]]", width: int, is_tight: bool, is_apart: bool,
) -> None:  # fmt: skip
    monkeypatch.setattr(store_module, "is_tight", lambda more=0: is_tight)
    most_resident.clear()
    store = Store()
    store.add(PATTERN)
    expected = [PATTERN[at : at + width] for at in addresses.tolist()]
    assert list(map(bytes, store.gather(addresses, width))) == expected
    pointers, _owner = store.pointers(addresses, np.full(len(addresses), width))
    assert [ctypes.string_at(at, width) for at in pointers.tolist()] == expected
    assert (len(most_resident) > 2) == is_apart
    if is_apart:
        assert max(most_resident) <= PAGES + 1


def test_many_bytes_far_apart_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "is_tight", lambda more=0: True)
    store = Store()
    store.add(PATTERN)
    sizes = np.full(len(FAR), COPIED // len(FAR) + 1)
    pointers, _owner = store.pointers(FAR, sizes)
    assert np.array_equal(np.diff(pointers.astype(np.int64)), np.diff(FAR))
    missing, _owner = store.pointers(np.append(FAR, len(PATTERN) - 1), np.full(len(FAR) + 1, 2))
    assert missing[-1] == 0
    assert missing[:-1].all()

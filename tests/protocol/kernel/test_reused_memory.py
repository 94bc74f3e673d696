"""Memory is used again once nobody refers to it."""

from dissector.protocol.kernel.reused_memory import LEAST, MOST, MOST_BUFFERS, ReusedMemory


def test_memory_is_used_again_when_nothing_refers_to_it() -> None:
    memory = ReusedMemory()
    first = memory.take(LEAST)
    place, view = first.ctypes.data, first.data[3:5]
    del first
    assert memory.take(LEAST).ctypes.data != place, "a view of it is there"
    del view
    assert place in {memory.take(LEAST).ctypes.data for _ in range(2)}


def test_no_two_callers_have_the_same_memory() -> None:
    memory = ReusedMemory()
    taken = [memory.take(LEAST + number) for number in range(3 * MOST_BUFFERS)]
    assert len({each.ctypes.data for each in taken}) == len(taken)


def test_small_and_huge_memory_is_not_kept() -> None:
    memory = ReusedMemory()
    assert [len(memory.take(size)) for size in (0, 1, MOST + 1)] == [0, 1, MOST + 1]
    assert not memory._buffers

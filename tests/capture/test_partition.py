"""Blocks of a part put together: the same packets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture.partition import Block, join_small_blocks
from tests.capture_session.test_incremental import packets
from tests.conftest import PCAPS


def flat(blocks: list[Block]) -> list[tuple[bytes, bytes]]:
    """Columns and bytes of each packet."""
    found = []
    for each in blocks:
        columns = np.frombuffer(each.heads, "<i8").reshape(5, -1)
        ends = np.cumsum(columns[2]).tolist()
        assert ends[-1] == len(each.data)
        starts = [0, *ends[:-1]]
        found += [(columns[:, at].tobytes(), each.data[starts[at] : ends[at]]) for at in range(columns.shape[1])]
    return found


@given(enough=st.integers(1, 5_000), empty=st.sets(st.integers(0, 60)))
def test_packets_are_the_same_and_what_has_none_stays_by_itself(enough: int, empty: set[int]) -> None:
    some = packets(PCAPS / "librdkafka.pcapng")[:60]
    mixed = [block for at, each in enumerate(some) for block in ([Block(0, b"", b"marker")] * (at in empty) + [each])]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("dissector.capture.partition.JOINED_BYTES", enough)
        found = list(join_small_blocks(mixed))
    assert flat([each for each in found if each.heads]) == flat(some)
    assert [each.data for each in found if not each.heads] == [b"marker"] * len(empty & set(range(60)))
    assert all(len(each.data) >= enough for each in [each for each in found if each.heads][:-1])

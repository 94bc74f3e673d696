"""Both directions of a conversation belong to one part, the same in every process."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.arrays import UInt64
from dissector.transport.partitions import Partition, pair_hashes
from tests.transport.tcp_packets import Pairs, keys_of

ends = st.tuples(st.binary(min_size=16, max_size=16), st.integers(0, 65_535))
pairs = st.lists(st.tuples(ends, ends), min_size=1, max_size=20)


def marks(found: Pairs) -> UInt64:
    return pair_hashes(keys_of(found))


@given(found=pairs, parts=st.integers(1, 9))
def test_a_pair_has_one_part_in_either_direction(found: Pairs, parts: int) -> None:
    one, other = marks(found), marks([(to, source) for source, to in found])
    assert (one == other).all()
    shares = np.array([Partition(number, parts).contains(one) for number in range(parts)])
    assert (shares.sum(axis=0) == 1).all()


def test_parts_are_of_a_size() -> None:
    """Clients of one host, one port behind the other."""
    found = marks([((bytes(16), port), (bytes(15) + b"\x01", 9092)) for port in range(20_000, 30_000)])
    sizes = [int(Partition(number, 8).contains(found).sum()) for number in range(8)]
    assert min(sizes) > 1_100
    assert max(sizes) < 1_400


@pytest.mark.long
@pytest.mark.slow
def test_every_process_partitions_in_the_same_way() -> None:
    code = "from tests.transport.test_partitions import marks; print(marks([((bytes(16), 1), (bytes(16), 2))])[0])"
    printed = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
            for _ in range(2)}  # fmt: skip
    assert printed == {f"{marks([((bytes(16), 1), (bytes(16), 2))])[0]}\n"}

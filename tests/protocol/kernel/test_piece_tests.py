"""What the kernel finds in frames is what Python finds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.embedded.secrets import name_metadata_log, names_metadata_log
from dissector.protocol.kernel.piece_tests import Marks

PIECES = st.sampled_from((b"__clus", b"__cluster_metadata", b"ter_met", b"_", b"__clu", bytes(15) + b"\x01", bytes(14)))
FRAMES = st.lists(st.lists(PIECES | st.binary(max_size=6), max_size=6).map(b"".join), max_size=6)


def in_memory(frames: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Addresses and sizes of copies, each in memory of its own size, and what keeps them."""
    copies = [np.frombuffer(frame, np.uint8).copy() for frame in frames]
    addresses = np.array([copy.ctypes.data for copy in copies], np.uint64)
    return addresses, np.array([*map(len, frames)], np.int64), np.array([*copies, None], object)


@given(FRAMES)
def test_frames_that_name_the_metadata_log_are_found(frames: list[bytes]) -> None:
    addresses, sizes, _owner = in_memory(frames)
    assert name_metadata_log(addresses, sizes).tolist() == [names_metadata_log(frame) for frame in frames]


@given(FRAMES, st.lists(st.binary(min_size=1, max_size=3), min_size=1, unique=True), st.integers(0, 2))
def test_marks_are_found_wherever_their_anchor_is(frames: list[bytes], marks: list[bytes], anchor: int) -> None:
    addresses, sizes, _owner = in_memory(frames)
    found = Marks({mark: min(anchor, len(mark) - 1) for mark in marks}).are_in(addresses, sizes)
    assert found.tolist() == [any(mark in frame for mark in marks) for frame in frames]

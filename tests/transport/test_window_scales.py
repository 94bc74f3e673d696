"""The scales of windows in the options of TCP headers (RFC 9293, 3.1; RFC 7323, 2.2)."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.batches import NO_SCALE
from dissector.transport.tcp import window_scales


def plain(options: bytes) -> int:
    """The same, of one header."""
    at = 0
    while at + 1 < len(options) and options[at] != 0:
        if options[at] == 1:
            at += 1
            continue
        kind, size = options[at], options[at + 1]
        if kind == 3 and size == 3 and at + 2 < len(options):
            return min(options[at + 2], 14)
        if size < 2:
            break
        at += size
    return NO_SCALE


BYTES = st.sampled_from((0, 1, 1, 2, 3, 3, 3, 4, 8, 10, 15, 255))


@given(headers=st.lists(st.lists(BYTES, max_size=40).map(bytes)), before=st.binary(max_size=3))
def test_scales_are_those_of_a_plain_loop(headers: list[bytes], before: bytes) -> None:
    data = np.frombuffer(before + b"".join(headers), np.uint8)
    ends = len(before) + np.cumsum([len(each) for each in headers], dtype=np.int64)
    starts = ends - [len(each) for each in headers]
    assert window_scales(data, starts, ends).tolist() == [plain(each) for each in headers]


def test_options_outside_of_the_data_are_not_read() -> None:
    starts, ends = np.array([-1, 2, 0]), np.array([2, 1, 5])
    assert window_scales(np.array([3, 3, 7, 0], np.uint8), starts, ends).tolist() == [NO_SCALE] * 3

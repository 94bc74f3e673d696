"""Which layouts a frame may fit is what reading it along each of them says."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.reader import DECODE_ERRORS, reader
from dissector.protocol.inference.layouts import LayoutFits, ResponseLayout, layout_program, layouts
from dissector.protocol.inference.verdict import BEGIN
from dissector.protocol.kernel.shredding import Arena, FrameMemory, ShredError
from tests.protocol.random_messages import make

LAYOUTS = layouts()
PROGRAMS = [layout_program(each) for each in LAYOUTS]
FITS = LayoutFits(PROGRAMS, BEGIN)


def reads(frame: bytes, layout: ResponseLayout) -> bool:
    """Whether the reader reads a frame along a layout to its last byte."""
    try:
        _, at = reader("ResponseHeader", layout.header_version)(frame, BEGIN, len(frame))
        return reader(layout.api.response, layout.versions[-1], layout.other)(frame, at, len(frame))[1] == len(frame)
    except DECODE_ERRORS:
        return False


def frame_of(layout: ResponseLayout, chance: random.Random) -> bytes:
    """A frame of made values."""
    header = make(plan("ResponseHeader", layout.header_version), chance)[1]
    return bytes(BEGIN) + header + make(layout.plan, chance)[1]


@given(st.sampled_from(LAYOUTS), st.randoms(use_true_random=False), st.integers(0, 3))
def test_what_the_reader_reads_may_fit_and_what_the_kernel_refuses_does_not(
    layout: ResponseLayout, chance: random.Random, damaged: int
) -> None:
    frame = bytearray(frame_of(layout, chance))
    for _ in range(damaged):
        frame[chance.randrange(BEGIN, len(frame))] = chance.randrange(256)
    found = FITS.of(bytes(frame)).tolist()
    memory = FrameMemory.of_buffer(np.frombuffer(bytes(frame), np.uint8), np.zeros(1, np.int64), np.array([len(frame)]))
    for each, program, may_fit in zip(LAYOUTS, PROGRAMS, found, strict=True):
        assert may_fit or not reads(bytes(frame), each)
        [shredded] = Arena().shred(memory, program, program.wanted(), BEGIN)
        stricter = (ShredError.NONE, ShredError.REPEATED_TAG, ShredError.TOO_DEEP)
        assert may_fit == (shredded.errors[0] in stricter)
    assert damaged or found[layout.number]


def test_a_layout_has_its_place_as_its_number() -> None:
    assert [each.number for each in LAYOUTS] == list(range(len(LAYOUTS)))

"""LZ4 frames of one block are opened without the decoder of frames: the result is the same, whatever the bytes are."""

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.records.compression import CODECS, DecompressionError
from dissector.protocol.records.lz4 import single_block

LIMIT = 1 << 20
LZ4 = CODECS[3]


def frame_of(plain: bytes) -> bytes:
    """A frame as Kafka's clients write it: one block, no checksums but the head's."""
    block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
    return bytes.fromhex("04224d186040") + b"\x82" + len(block).to_bytes(4, "little") + block + bytes(4)


def by_frame(data: bytes) -> bytes | None:
    """What the library makes of a frame; None where it refuses."""
    try:
        return bytes(cramjam.lz4.decompress(data))
    except cramjam.DecompressionError:
        return None


def ours(data: bytes, limit: int = LIMIT) -> bytes | None:
    try:
        return LZ4.decompress(data, limit)
    except DecompressionError:
        return None


def test_a_small_compressed_frame_has_one_block() -> None:
    plain = b"teacup " * 100
    frame = frame_of(plain)
    block = single_block(frame)
    assert block is not None
    assert block[1] == 64 << 10
    assert ours(frame) == plain
    assert single_block(frame + b"\0") is None
    assert single_block(frame[:-1]) is None
    assert single_block(b"") is None
    assert by_frame(frame) == plain


@given(st.binary(max_size=300), st.integers(1, 400))
def test_frames_are_read_as_they_were_made(part: bytes, times: int) -> None:
    assert ours(frame_of(part * times)) == part * times


@given(st.binary(min_size=1, max_size=60), st.integers(1, 30), st.data())
def test_damaged_frames_are_read_as_the_library_reads_frames(part: bytes, times: int, data: st.DataObject) -> None:
    frame = bytearray(frame_of(part * times))
    frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    assert ours(bytes(frame)) == by_frame(bytes(frame))


def test_the_limit_holds() -> None:
    frame = frame_of(bytes(50_000))
    assert single_block(frame) is not None
    assert ours(frame, 50_000) == bytes(50_000)
    with pytest.raises(DecompressionError, match="larger than"):
        LZ4.decompress(frame, 49_999)

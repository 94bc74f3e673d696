"""LZ4 frames: the header checksum, which clients before Kafka 0.10 got wrong (KIP-57), and frames of one block.

The checksum is the second byte of the xxHash-32 of the frame descriptor; those clients hashed the frame's magic number,
too. Today's decoders refuse such frames, so the checksum is corrected before.
"""

from typing import Final

MAGIC: Final = b"\x04\x22\x4d\x18"
_CONTENT_SIZE: Final = 0x08
_HEAD: Final = 7
_BLOCK_AT: Final = _HEAD + 4
_END: Final = bytes(4)
_PRIME_1: Final = 2654435761
_PRIME_2: Final = 2246822519
_PRIME_3: Final = 3266489917
_PRIME_4: Final = 668265263
_PRIME_5: Final = 374761393
_MASK: Final = 0xFFFFFFFF


def with_right_checksum(frame: bytes) -> bytes:
    """Return the frame with a correct header checksum if it has the old, wrong one; else the input."""
    if not frame.startswith(MAGIC) or len(frame) < len(MAGIC) + 3:
        return frame
    end = len(MAGIC) + 2 + (8 if frame[4] & _CONTENT_SIZE else 0)
    if end >= len(frame) or frame[end] != _checksum(frame[:end]):
        return frame
    return frame[:end] + bytes([_checksum(frame[len(MAGIC) : end])]) + frame[end + 1 :]


def with_wrong_checksum(frame: bytes) -> bytes:
    """Return the frame as clients before Kafka 0.10 wrote it."""
    end = len(MAGIC) + 2 + (8 if frame[4] & _CONTENT_SIZE else 0)
    return frame[:end] + bytes([_checksum(frame[:end])]) + frame[end + 1 :]


def _checksum(data: bytes) -> int:
    return _xxh32(data) >> 8 & 0xFF


def _xxh32(data: bytes) -> int:
    """Return the xxHash-32, with seed 0, of fewer than 16 bytes: a descriptor is never longer."""
    value = _PRIME_5 + len(data)
    whole = len(data) - len(data) % 4
    for at in range(0, whole, 4):
        value = value + int.from_bytes(data[at : at + 4], "little") * _PRIME_3 & _MASK
        value = _rotated(value, 17) * _PRIME_4 & _MASK
    for byte in data[whole:]:
        value = _rotated(value + byte * _PRIME_5 & _MASK, 11) * _PRIME_1 & _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return value ^ value >> 16


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 32 - by) & _MASK


_PLAIN_HEADS: Final = {
    MAGIC + descriptor + bytes([_checksum(descriptor)]): 1 << 8 + 2 * size
    for size, descriptor in ((size, bytes([0x60, size << 4])) for size in range(4, 8))
}
"""Headers of frames with independent blocks and no checksums, each with the most bytes of a decompressed block."""


def single_block(frame: bytes) -> tuple[bytes, int] | None:
    """Return the only block of a frame and the most bytes that it may decompress to; None for other frames.

    The frame has no checksum. Most batches are such frames, and decoding a frame takes ten times as long as a block.
    """
    most = _PLAIN_HEADS.get(frame[:_HEAD])
    if most is None or not frame.endswith(_END):
        return None
    size = int.from_bytes(frame[_HEAD:_BLOCK_AT], "little")
    return (frame[_BLOCK_AT : -len(_END)], most) if size == len(frame) - _BLOCK_AT - len(_END) > 0 else None

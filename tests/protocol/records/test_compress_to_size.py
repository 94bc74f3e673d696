"""Any section that has lost its contents is packed to the size that it had, and unpacked to what was packed."""

import gzip
import random
import zlib

import cramjam
import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.records.compress_to_size import _variants, compress_to_size
from dissector.protocol.records.compression import CODECS
from dissector.protocol.schema.field_enums import CompressionType
from tests.cases import cases
from tests.traffic import seeds
from tests.zstd_library import zstd

LIMIT = 1 << 24


def sections(chance: random.Random, pieces: int) -> tuple[bytes, bytes, list[tuple[int, int]]]:
    """What was in a section, the same with asterisks for contents, and where these are."""
    was, now, free = bytearray(), bytearray(), []
    letters = chance.choice((b"ab", bytes(range(256)), b"{}:,0123456789"))
    for _ in range(pieces):
        head, size = chance.randbytes(chance.randint(1, 8)), chance.randint(0, 60)
        free.append((len(now) + len(head), len(now) + len(head) + size))
        was += head + bytes(chance.choices(letters, k=size))
        now += head + b"*" * size
    return bytes(was), bytes(now), free


def compressed(codec: str, data: bytes) -> tuple[int, bytes]:
    """The codec's number, and bytes as its clients write them."""
    if codec == "raw snappy":
        return 2, bytes(cramjam.snappy.compress_raw(data))
    number = next(number for number, each in CODECS.items() if each.name == codec)
    return number, CODECS[number].compress(data)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gzip", "snappy", "raw snappy", "lz4", "zstd"])
@given(chance=seeds, pieces=st.integers(4, 150))
def test_a_section_keeps_its_size_and_its_redacted_content(name: str, chance: random.Random, pieces: int) -> None:
    was, now, free = sections(chance, pieces)
    codec, like = compressed(name, was)
    made = compress_to_size(codec, now, like, free)
    assert made is not None
    assert len(made) == len(like)
    again = CODECS[codec].decompress(made, LIMIT)
    fixed = [at for at in range(len(now)) if not any(start <= at < end for start, end in free)]
    assert len(again) == len(now)
    assert [again[at] for at in fixed] == [now[at] for at in fixed]
    if name != "lz4":  # whose contents may be other bytes, to be a little larger
        assert again == now


@given(chance=seeds)
def test_other_decoders_read_the_result(chance: random.Random) -> None:
    was, now, free = sections(chance, 40)
    readers = {"gzip": lambda data: zlib.decompress(data, 31), "zstd": zstd.decompress, "lz4": lz4.frame.decompress}
    for name, read in readers.items():
        codec, like = compressed(name, was)
        made = compress_to_size(codec, now, like, free)
        assert made is not None
        assert len(read(made)) == len(now)


def test_content_that_does_not_fit_gives_none() -> None:
    noise = random.Random(1).randbytes(500)
    for codec in (1, 2, 3, 4):
        assert compress_to_size(codec, noise, bytes(20), []) is None
    assert compress_to_size(7, noise, noise, []) is None


def test_a_large_snappy_section_has_blocks() -> None:
    was, now, free = sections(random.Random(2), 4000)
    codec, like = compressed("snappy", was)
    assert len(was) > 3 * (32 << 10)
    made = compress_to_size(codec, now, like, free)
    assert made is not None
    assert CODECS[codec].decompress(made, LIMIT) == now


NOISE = random.Random(1).randbytes(1 << 17)
SNAPPY, LZ4 = CompressionType.SNAPPY, CompressionType.LZ4


def in_room(plain: bytes, room: int) -> bytes | None:
    """A raw snappy section with so many bytes more than it needs, checked to be what it was."""
    like = bytes(len(cramjam.snappy.compress_raw(plain)) + room)
    made = compress_to_size(SNAPPY, plain, like, [])
    assert made is None or (len(made) == len(like) and bytes(cramjam.snappy.decompress_raw(made)) == plain)
    return made


@cases("size", [1, 2, 3, 4, 5, 59, 60, 61, 62, 127, 128, 256, 257])
def test_a_snappy_literal_of_any_length_fills_any_room_up_to_five_bytes_a_byte(size: int) -> None:
    plain = b"\5" + NOISE[: size - 1]  # its first byte is no length that fits
    most = 5 * (size - 1) + 1 - (size > 60) - (size > 256)
    rooms = {*range(min(most, 40)), *range(max(0, most - 8), most)}
    assert [room for room in sorted(rooms) if in_room(plain, room) is None] == []
    fits = [in_room(plain, most + more) is not None for more in range(5)]
    assert fits == [False, False, True, True, False]  # decoders read four bytes behind a tag
    assert in_room(plain, -1) is None


@cases(
    ("plain", "but"),
    [
        (b"abcd" * 5, [20]),  # a copy that overlaps itself
        (b"*" * 64, [5]),
        (b"*" * 65, [5]),
        (NOISE[:100] + b"*" * 68 + NOISE[:20], []),
        (NOISE[:3000] + NOISE[:100], []),  # a copy from far back
        (NOISE[:60] + b"*" * 64 + NOISE[60:121], []),
        (NOISE[:300] + NOISE[100:110], []),  # short copies, from near and from farther back
        (NOISE[:1000] + NOISE[100:111] + NOISE[700:709], []),
        (b"abcdefgh" * 2 + b"0123456789ABCDEFG", []),
        (NOISE[:6] * 2 + NOISE[50:80], []),
        ((NOISE[:20] + b"*" * 64) * 3 + NOISE[:70] + b"*" * 200, []),
    ],
)
def test_snappy_copies_become_literals_where_there_is_room(plain: bytes, but: list[int]) -> None:
    assert [room for room in range(90) if in_room(plain, room) is None] == but


def test_a_short_snappy_copy_from_far_back_is_shortened() -> None:
    """All that comes before it takes as much room as it can."""
    plain = NOISE[:20] + b"*" * 300 + NOISE[5:15] + NOISE[50:80]
    assert [room for room in range(1_870, 1_910) if in_room(plain, room) is None] == []


@cases("number", [CompressionType.GZIP, CompressionType.ZSTD])
def test_gzip_and_zstd_fill_any_room(number: int) -> None:
    for plain in (b"", b"*", NOISE[:300], b"*" * 5000):
        smallest = next(size for size in range(400) if compress_to_size(number, plain, bytes(size), []) is not None)
        packed = len(gzip.compress(plain, 9) if number == CompressionType.GZIP else cramjam.zstd.compress(plain, 19))
        assert smallest == packed
        for room in range(12):
            made = compress_to_size(number, plain, bytes(smallest + room), [])
            assert made is not None
            assert len(made) == smallest + room
            assert CODECS[number].decompress(made, LIMIT) == plain
            assert number != CompressionType.GZIP or made[3] in (0, 0x10)  # no flag but that of a comment


def test_lz4_fills_room_with_a_frame_to_skip_or_with_contents_that_compress_worse() -> None:
    plain, free = NOISE[:50] + b"*" * 200 + NOISE[:50], [(50, 250)]
    smallest = next(size for size in range(400) if compress_to_size(LZ4, plain, bytes(size), []) is not None)
    unfit = [room for room in range(12) if compress_to_size(LZ4, plain, bytes(smallest + room), []) is None]
    assert unfit == [*range(1, 8)]
    for room in range(12):
        made = compress_to_size(LZ4, plain, bytes(smallest + room), free)
        assert made is not None
        assert len(made) == smallest + room
        again = lz4.frame.decompress(made)
        assert (again[:50], len(again), again[250:]) == (plain[:50], 300, plain[250:])
        assert (again == plain) == (room in (0, *range(8, 12)))


def test_contents_change_from_the_end_of_each_free_span_and_nowhere_else() -> None:
    assert list(_variants(b"*" * 7, [(1, 3), (5, 6)])) == [
        b"*******", b"**\x80****", b"*\x87\x80****", b"*\x87\x80**\x8e*",
    ]  # fmt: skip
    assert len(list(_variants(b"*" * 100, [(0, 100)]))) == 65


@cases("size", [300, 1 << 10, 70_000])
def test_zstd_frames_with_and_without_a_window_are_filled(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {zstd.CompressionParameter.window_log: 10}
    monkeypatch.setattr(cramjam.zstd, "compress", lambda data, _level: zstd.compress(data, options=options))
    plain = NOISE[:size]
    least = len(zstd.compress(plain, options=options))
    for room in range(8):
        made = compress_to_size(CompressionType.ZSTD, plain, bytes(least + room), [])
        assert made is not None
        assert (len(made), zstd.decompress(made)) == (least + room, plain)
    assert compress_to_size(CompressionType.ZSTD, plain, bytes(least - 1), []) is None

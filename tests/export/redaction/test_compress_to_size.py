"""Any section that has lost its contents is packed to the size that it had, and unpacked to what was packed."""

import random
import zlib

import cramjam
import lz4.frame
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from dissector.export.redaction.compress_to_size import compress_to_size
from dissector.protocol.records.compression import CODECS
from tests.traffic import seeds

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
    if name != "lz4":  # whose contents may be letters, to be a little larger
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

"""Lanes give what walking from record to record does, whatever the bytes; and of a clean capture little is walked."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture import parallel_scan
from dissector.capture.files import CaptureFormat
from dissector.capture.pcap import Pcap
from dissector.capture.pcap_records import MAGICS
from dissector.capture.pcapng import Pcapng
from dissector.core.limits import DEFAULT
from tests.capture.test_resync import blanked, inserted, lost, overwritten
from tests.capture.writers import Seen, pcap, pcapng, sections, talkative

START = 1_700_000_000_000_000_000
WRITERS: list[Callable[[list[Seen]], bytes]] = [
    pcap,
    lambda packets: pcap(packets, order=">", magic=0xA1B23C4D),
    lambda packets: pcap(packets, magic=0xA1B2CD34, more=bytes(8)),
    pcapng,
    lambda packets: pcapng(packets, ">"),
    sections,
    talkative,
]


def made(chance: random.Random, count: int, inner: bytes) -> list[Seen]:
    """Packets of many sizes, some of which hold a piece of a capture, or the like of nothing."""
    found = []
    for n in range(count):
        size = chance.choice((0, 1, 40, 40, 66, 300, 1500))
        at = chance.randrange(len(inner) + 1)
        data = chance.choice((chance.randbytes(size), bytes(size), inner[at : at + 5 * size]))
        found.append(Seen(START + n * chance.choice((0, 1_000_000, 10**12)), data, len(data)))
    return found


def opened(data: bytes) -> CaptureFormat:
    return (Pcap if data[:4] in MAGICS else Pcapng)("name", data[:4], 0, DEFAULT)


def read(data: bytes, cut: int, most: int | None) -> tuple[list[Any], list[str]]:
    """Packets and problems of a file that is looked at before it is all there, and then to its end."""
    file = opened(data)
    found: list[Any] = []
    for seen, ended in ((data[:cut], False), (data, True)):
        while (batch := file.next(np.frombuffer(seen, np.uint8), ended=ended, most=most)) is not None:
            columns = (batch.time_ns, batch.offset, batch.captured, batch.length, batch.link_type)
            found += zip(*(column.tolist() for column in columns), strict=True)
    return found, [problem.message for problem in file.problems]


@given(
    seed=st.integers(0, 2**32),
    write=st.sampled_from(WRITERS),
    within=st.sampled_from(WRITERS),
    harms=st.lists(st.sampled_from([overwritten, blanked, lost, inserted]), max_size=3),
    per_lane=st.integers(1, 5),
    fewest=st.integers(1, 4),
    most=st.none() | st.integers(1, 60),
    whole=st.floats(0, 1),
)
def test_lanes_find_what_walking_finds(
    seed: int,
    write: Callable[[list[Seen]], bytes],
    within: Callable[[list[Seen]], bytes],
    harms: list[Callable[[bytes, int, int, random.Random], bytes]],
    per_lane: int,
    fewest: int,
    most: int | None,
    whole: float,
) -> None:
    chance = random.Random(seed)
    data = write(made(chance, chance.randrange(120), within(made(chance, 20, b""))))
    for harm in harms:
        at = chance.randrange(min(60, len(data)), len(data) + 1)
        data = harm(data, at, min(chance.choice((1, 4, 64, 512)), len(data) - at), chance)
    cut = int(whole * len(data))
    plain = read(data, cut, most)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel_scan, "RECORDS_PER_LANE", per_lane)
        patch.setattr(parallel_scan, "MIN_LANES", fewest)
        patch.setattr(parallel_scan, "MAX_STEPS", 3 * per_lane)
        assert read(data, cut, most) == plain


@pytest.mark.slow
@pytest.mark.parametrize("write", WRITERS[:5])
def test_of_a_clean_capture_little_is_walked(
    write: Callable[[list[Seen]], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(7)
    packets = [Seen(START + n * 10_000_000, chance.randbytes(chance.choice((40, 66, 300))), 300) for n in range(60_000)]
    walked = 0
    for kind in (Pcap, Pcapng):

        def counted(
            self: Any, data: Any, at: int, until: int, most: int, walk: Any = kind._walk
        ) -> tuple[list[int], int]:
            nonlocal walked
            found, at = walk(self, data, at, until, most)
            walked += len(found)
            return found, at

        monkeypatch.setattr(kind, "_walk", counted)
    data = write(packets)
    found, problems = read(data, 0, None)
    assert (len(found), problems) == (len(packets), [])
    assert walked < len(packets) // 3


def test_first_batches_are_small_and_the_next_ones_larger() -> None:
    data = np.frombuffer(pcap([Seen(START, b"abcd", 4)] * 150_000), np.uint8)
    file = opened(data.tobytes())
    sizes = []
    while (batch := file.next(data, ended=True)) is not None:
        sizes.append(len(batch))
    assert sizes[:4] == [4096, 8192, 16384, 32768]
    assert max(sizes) == 65536
    assert sum(sizes) == 150_000


def test_many_blocks_that_are_no_packets_are_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissector.capture.pcapng.BATCH_BYTES", 64)
    packets = [Seen(START + n, b"abcd", 4) for n in range(4)]
    clean = pcapng(packets)
    at = clean.index(b"\x06\0\0\0")
    custom = b"\xad\x0b\0\0" + (32).to_bytes(4, "little") + bytes(20) + (32).to_bytes(4, "little")
    found, problems = read(clean[:at] + custom * 5 + clean[at:], 0, None)
    assert (len(found), problems) == (4, [])

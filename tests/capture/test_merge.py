"""Several files as one capture: the order of time, whole conversations, and nothing copied that need not be."""

import random
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture import merge, open_capture
from dissector.capture.merge import PacketMerger
from dissector.capture_session import Capture
from dissector.core.limits import DEFAULT, Limits
from dissector.core.store import Store
from tests.capture.test_formats import CLEAN, clean, clean_packets, shown, written
from tests.capture.writers import (
    COMPRESSIONS,
    Seen,
    enhanced,
    interface,
    nanoseconds,
    option,
    pcap,
    pcapng,
    section,
    seen,
)
from tests.cases import cases
from tests.cli.test_commands import KDISSECT
from tests.conftest import some_of
from tests.needs import needs

NANOS = 0xA1B23C4D


def merged(paths: list[Path], limits: Limits = DEFAULT) -> tuple[list[tuple[int, bytes]], int, list[str]]:
    """Times and bytes of all packets; how many of them were copied; codes of what is wrong."""
    store = Store()
    readers = [open_capture(str(path), store) for path in paths]
    merging = PacketMerger(readers, store, limits)
    found = []
    bases = {reader._source.base for reader in readers}
    copied = 0
    for batch in merging.batches():
        assert batch.number.tolist() == list(range(len(found), len(found) + len(batch)))
        copied += len(batch) if batch.base not in bases else 0
        for at, size, time in zip(batch.offset.tolist(), batch.captured.tolist(), batch.time_ns.tolist(), strict=True):
            data = batch.data[at : at + size].tobytes()
            assert bytes(store.read(batch.base + at, size)) == data
            found.append((time, data))
    return found, copied, [problem.code for problem in merging.problems]


def made(times: list[int], mark: int) -> list[Seen]:
    return [Seen(time, bytes([mark]) + n.to_bytes(3, "big"), 4) for n, time in enumerate(times)]


@pytest.mark.slow
@given(
    files=st.lists(st.lists(st.integers(0, 40), max_size=30), min_size=1, max_size=5),
    batch=st.integers(1, 9),
    sort=st.booleans(),
)
def test_packets_come_in_the_order_of_time_and_each_file_keeps_its_order(
    tmp_path: Path, files: list[list[int]], batch: int, sort: bool
) -> None:
    lists = [made([10**18 + t for t in (sorted(times) if sort else times)], n) for n, times in enumerate(files)]
    paths = [written(tmp_path, pcap(packets, magic=NANOS), f"{n}") for n, packets in enumerate(lists)]
    # The plain way: each file's times, made never to run backwards; sorted; ties by the order of files.
    keyed = [
        (int(key), which, n, packet)
        for which, packets in enumerate(lists)
        for n, (key, packet) in enumerate(
            zip(np.maximum.accumulate([0, *(p.time_ns for p in packets)])[1:], packets, strict=True)
        )
    ]
    expected = [(packet.time_ns, packet.data) for *_, packet in sorted(keyed, key=lambda each: each[:3])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dissector.capture.pcap.BATCH_PACKETS", batch)
        patch.setattr(merge, "BATCH_PACKETS", batch)
        patch.setattr(merge, "_LEAST_PACKETS", 1)
        found, _, problems = merged(paths)
    if len(files) > 1:
        assert found == expected
    assert not problems


def test_files_of_a_ring_are_read_in_the_order_of_time_and_nothing_is_copied(tmp_path: Path) -> None:
    packets = clean_packets()
    cuts = list(range(0, len(packets), 60))
    paths = [written(tmp_path, pcapng(packets[at : at + 60]), f"ring{n}") for n, at in enumerate(cuts)]
    paths += [written(tmp_path, pcapng([]), "empty"), written(tmp_path, pcap([]), "empty.pcap")]
    random.Random(1).shuffle(paths)
    found, copied, _ = merged(paths)
    assert found == [(packet.time_ns, packet.data) for packet in packets]
    assert not copied
    assert shown(*paths) == (clean(), [])


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(["pcap", "gzip"], "gzip"))
def test_a_ring_may_have_more_files_than_a_shell_allows(tmp_path: Path, name: str) -> None:
    packets = clean_packets()
    step = len(packets) // 60
    pieces = [pcapng(packets[at : at + step]) for at in range(0, len(packets), step)]
    pack = COMPRESSIONS.get(name, bytes)
    paths = [str(written(tmp_path, pack(piece), f"{n}")) for n, piece in enumerate(pieces)]
    limited = ["sh", "-c", 'ulimit -S -n 40; exec "$@"', "sh", *KDISSECT, "show", *paths]
    done = subprocess.run(limited, capture_output=True, check=False)
    assert not done.stderr
    assert len(done.stdout.splitlines()) == len(clean()) + 1


@pytest.mark.parametrize("ways", [2, 3])
def test_files_that_overlap_are_merged_packet_by_packet(tmp_path: Path, ways: int) -> None:
    packets = clean_packets()
    paths = [written(tmp_path, pcap(packets[n::ways], magic=NANOS), f"{n}") for n in range(ways)]
    found, copied, _ = merged(paths)
    assert found == [(packet.time_ns, packet.data) for packet in packets]
    assert copied
    assert shown(*paths[::-1]) == (clean(), [])


def test_the_more_files_overlap_the_fewer_packets_of_each_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "BATCH_PACKETS", 400)
    monkeypatch.setattr(merge, "_LEAST_PACKETS", 2)
    files = [made([10**18 + 40 * n + which for n in range(500)], which) for which in range(40)]
    paths = [written(tmp_path, pcap(packets, magic=NANOS), f"{n}") for n, packets in enumerate(files)]
    store = Store()
    merging = PacketMerger([open_capture(str(path), store) for path in paths], store, DEFAULT)
    sizes = [len(batch) for batch in merging.batches()]
    assert sum(sizes) == 40 * 500
    assert max(sizes) <= 400 * 5  # 1 + 1/2 + 1/3 + … + 1/40 is 4.3


def test_only_the_stretch_that_overlaps_is_copied(tmp_path: Path) -> None:
    one = made([10**18 + n for n in range(0, 10_000)], 1)
    other = made([10**18 + n for n in range(9_990, 20_000)], 2)
    paths = [written(tmp_path, pcap(one, magic=NANOS), "1"), written(tmp_path, pcap(other, magic=NANOS), "2")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge, "BATCH_PACKETS", 100)
        patch.setattr(merge, "_LEAST_PACKETS", 100)
        found, copied, _ = merged(paths)
    assert [time for time, _ in found] == sorted(time for time, _ in found)
    assert 20 <= copied <= 400


def test_what_mergecap_makes_of_them_is_the_same(tmp_path: Path) -> None:
    needs("mergecap")
    packets = clean_packets()
    chance = random.Random(5)
    which = [chance.randrange(3) for _ in packets]
    paths = [
        written(tmp_path, pcapng([p for p, w in zip(packets, which, strict=True) if w == n]), f"{n}") for n in range(3)
    ]
    subprocess.run(["mergecap", "-w", tmp_path / "theirs", *paths], check=True, capture_output=True)
    assert merged(paths)[0] == [(packet.time_ns, packet.data) for packet in seen(tmp_path / "theirs")]


def test_a_damaged_file_among_good_ones_is_named_and_the_others_are_whole(tmp_path: Path) -> None:
    packets = clean_packets()
    good = written(tmp_path, pcapng(packets[: len(packets) // 2]), "good")
    bad = written(tmp_path, pcapng(packets[len(packets) // 2 :]) + b"\xff" * 64, "bad")
    with Capture([str(bad), str(good)]) as capture:
        assert sum(1 for _ in capture.exchanges()) == len(clean())
        [problem] = capture.problems
    assert problem.code == "file-damaged"
    assert f"{bad}: packet {len(packets) - len(packets) // 2 + 1} at byte" in problem.message


def test_comments_stay_with_their_packets(tmp_path: Path) -> None:
    packets = clean_packets()[:40]

    def commented(which: int) -> bytes:
        blocks = [
            enhanced(packet, packet.time_ns, options=option("<", 1, f"number {n}".encode()) + bytes(4))
            for n, packet in list(enumerate(packets))[which::2]
        ]
        return section() + interface(options=nanoseconds()) + b"".join(blocks)

    paths = [written(tmp_path, commented(n), f"{n}") for n in (0, 1)]
    with Capture([str(path) for path in paths]) as capture:
        for _ in capture.read():
            pass
        assert capture.comments == {n: f"number {n}" for n in range(40)}


def test_merging_stops_at_its_limit_and_every_packet_is_still_read(tmp_path: Path) -> None:
    packets = clean_packets()
    paths = [written(tmp_path, pcap(packets[n::2], magic=NANOS), f"{n}") for n in (0, 1)]
    found, _, problems = merged(paths, Limits(spooled_bytes=1000))
    assert sorted(found) == sorted((packet.time_ns, packet.data) for packet in packets)
    assert problems == ["not-merged"]


def test_a_file_given_twice_changes_no_exchange(tmp_path: Path) -> None:
    found, problems = shown(CLEAN, CLEAN)
    assert found == clean()
    assert not problems


@cases("gap", [0, 5])
def test_many_files_are_looked_at_when_they_have_packets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gap: int
) -> None:
    """All of the same time, or one after the other: a file is looked at a few times, however many there are."""
    count, looks = 60, []
    paths = [written(tmp_path, pcap(made([n * gap, n * gap + 3], n), magic=NANOS), f"{n}") for n in range(count)]
    real = merge._MergedFile.take
    monkeypatch.setattr(merge._MergedFile, "take", lambda file, until: looks.append(file.which) or real(file, until))
    found = merged(paths)[0]
    assert len(found) == 2 * count
    assert max(Counter(looks).values()) <= 2

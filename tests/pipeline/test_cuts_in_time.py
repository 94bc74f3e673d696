"""Files that overlap in time are cut at the same time: all splits, one behind the other, are the one merge."""

import random
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="NOT TESTED with pyarrow: it is not installed")

from hypothesis import given
from hypothesis import strategies as st

from dissector.capture import packet_times
from dissector.capture_session.tally import CaptureTally
from dissector.core.store import Store
from dissector.pipeline.file_scan import scan_file
from dissector.pipeline.splits import InputSplit, batches, group_splits, splits
from tests.capture.writers import COMPRESSIONS, Seen, pcap, pcapng, sections, seen, talkative, two_interfaces
from tests.conftest import PCAPS, costly

BEGIN = 1_700_000_000 * 10**9
WRITERS: dict[str, Callable[[list[Seen]], bytes]] = {
    "pcap": lambda packets: pcap(packets, magic=0xA1B23C4D), "pcapng": pcapng, "sections": sections,
    "interfaces": two_interfaces, "talkative": talkative,
    "gzip": lambda packets: COMPRESSIONS["gzip"](pcapng(packets)),
}  # fmt: skip


class Read(NamedTuple):
    """A packet as a task reads it."""

    number: int
    file: int
    number_in_file: int
    time_ns: int
    data: bytes


def of_splits(found: Sequence[InputSplit]) -> list[Read]:
    tally, read = CaptureTally(), list[Read]()
    for split in found:
        before = len(read)
        for batch, sources in batches(split, Store(), tally):
            alone = split.parts[0].range.first - split.first  # what is merged with nothing says no sources
            places = np.stack([batch.number, np.full(len(batch), split.origin), batch.number + alone])
            for row, (number, file, in_file) in enumerate((places if sources is None else sources).T.tolist()):
                at, size = int(batch.offset[row]), int(batch.captured[row])
                read.append(Read(number, file, in_file, int(batch.time_ns[row]), batch.data[at : at + size].tobytes()))
        assert len(read) - before == split.packets
    assert not tally.file_problems
    return read


def one_merge(paths: Sequence[Path], files: Sequence[Sequence[Seen]]) -> list[Read]:
    """The plain way: each file's times, made never to run backward; sorted; ties by the order of files."""
    first = [
        (packets[0].time_ns, max(packet.time_ns for packet in packets), sha256(path.read_bytes()).hexdigest())
        for path, packets in zip(paths, files, strict=True)
    ]
    keyed = sorted(
        (int(key), first[file], n, file)
        for file, packets in enumerate(files)
        for n, key in enumerate(np.maximum.accumulate([packet.time_ns for packet in packets]))
    )
    return [
        Read(number, file, n, files[file][n].time_ns, files[file][n].data)
        for number, (_, _, n, file) in enumerate(keyed)
    ]


def written(folder: Path, files: Sequence[Sequence[Seen]], forms: Sequence[str]) -> list[Path]:
    paths = [folder / f"broker-{number}" for number in range(len(files))]
    for path, packets, form in zip(paths, files, forms, strict=True):
        path.write_bytes(WRITERS[form](list(packets)))
    return paths


def made(times: Sequence[int], mark: int) -> list[Seen]:
    data = [bytes([mark]) + n.to_bytes(3, "big") + bytes(100) for n in range(len(times))]
    return [Seen(BEGIN + time, packet, 104) for time, packet in zip(times, data, strict=True)]


@pytest.mark.long
@costly(40)
@given(
    files=st.lists(
        st.tuples(
            st.lists(st.integers(0, 40), min_size=1, max_size=40), st.integers(0, 60), st.booleans(),
            st.sampled_from(list(WRITERS)),
        ), min_size=2, max_size=5,
    ), most=st.integers(1, 9), size=st.sampled_from([100, 500, 3_000, 1 << 30]), cells=st.sampled_from([3, 512]),
    tasks=st.sampled_from([1, 2, 3, 8]),
)  # fmt: skip
def test_all_splits_are_the_one_merge(
    tmp_path_factory: pytest.TempPathFactory, files: list[tuple[list[int], int, bool, str]], most: int, size: int,
    cells: int, tasks: int,
) -> None:  # fmt: skip
    """Whatever times go backward or are equal, in whatever formats, however coarse the counts by time are."""
    packets = [
        made([since + time for time in (sorted(times) if ascend else times)], file)
        for file, (times, since, ascend, _) in enumerate(files)
    ]
    paths = written(tmp_path_factory.mktemp("cut"), packets, [form for *_, form in files])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packet_times, "MOST_CELLS", cells)
        scans = [scan_file(str(path), most) for path in paths]
    expected = one_merge(paths, packets)
    read = [each for task in group_splits(splits(scans, size), tasks) for each in of_splits(task)]
    assert [each.number for each in read] == list(range(len(expected)))
    assert read == expected


@pytest.mark.parametrize("form", WRITERS)
def test_recordings_are_cut(tmp_path: Path, form: str) -> None:
    """All but a compressed one, which can only be read from its beginning."""
    packets, chance = seen(PCAPS / "java.pcapng"), random.Random(7)
    files: list[list[Seen]] = [[], [], []]
    for packet in packets:
        chance.choice(files).append(packet)
    paths = written(tmp_path, files, [form, "pcap", "pcapng"])
    found = splits([scan_file(str(path), 10) for path in paths], 10_000)
    assert len(found) > 5 if form != "gzip" else len(found) <= 3
    read = of_splits(found)
    assert read == one_merge(paths, files)
    assert [each.data for each in read] == [packet.data for packet in packets]


def test_each_split_has_about_its_share_and_only_files_with_packets_of_its_time(tmp_path: Path) -> None:
    """Near miss: files of which each overlaps the next one alone."""
    files = [made(range(n * 900, n * 900 + 1_000), n) for n in range(10)]
    paths = written(tmp_path, files, ["pcap"] * 10)
    found = splits([scan_file(str(path), 100) for path in paths], 20_000)
    share = 10_000 / -(-sum(1_000 * (104 + 40) for _ in files) // 20_000)
    assert all(0.8 * share < split.packets < 1.2 * share for split in found)
    assert max(len(split.parts) for split in found) == 2
    assert max(part.range.skipped for split in found for part in split.parts) < 100
    assert of_splits(found) == one_merge(paths, files)


def test_a_split_whose_file_has_changed_is_reported_alone(tmp_path: Path) -> None:
    files = [made(range(1_000), 0), made(range(500, 1_500), 1)]
    paths = written(tmp_path, files, ["pcap", "pcap"])
    found = splits([scan_file(str(path), 100) for path in paths], 20_000)
    paths[1].write_bytes(bytes(paths[1].stat().st_size))
    changed = []
    for split in found:
        tally = CaptureTally()
        for _ in batches(split, Store(), tally):
            pass
        changed.append({Path(each.path) for each in tally.file_problems})
    assert changed == [{Path(part.path) for part in split.parts} if len(split.parts) > 1 or
                       split.parts[0].path == str(paths[1]) else set() for split in found]  # fmt: skip
    assert set() in changed

"""Files read one after the other, in parts, give the rows of all files read at once: without Spark."""

import json
import pickle
import random
import shutil
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture.partition import Block
from dissector.capture_session import Capture
from dissector.core.object_graph import from_nodes, to_nodes
from dissector.findings.framework.aggregation import IncrementalAggregation
from dissector.index.shared_state import SharedState
from dissector.pipeline.file_scan import FileScan, scan_file
from dissector.pipeline.micro_batch import MicroBatchJob
from dissector.pipeline.observations import ORDER, findings_of, revisions_of
from dissector.pipeline.origins import FileOrigins, Origin
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.partition_rows import read_shared_state as read_shared_state_of_whole
from dissector.pipeline.partition_rows import rows as rows_of_whole
from dissector.pipeline.splits import route, splits
from dissector.tables.data_files import TALLIES, Output
from dissector.tables.schemas import OBSERVATIONS
from dissector.tls.key_log import KeyLog
from dissector.transport.partitions import Partition
from tests.capture_session.test_incremental import over_a_bad_network, packets
from tests.conftest import CAPTURES, ENCRYPTED, costly, some_bundled, some_of
from tests.pipeline.contents import current_findings
from tests.pipeline.test_encrypted import parted
from tests.pipeline.test_findings import busy
from tests.pipeline.without_spark import one_by_one as separate
from tests.traffic import block as pcapng_block
from tests.traffic import seeds

Rows = list[tuple[str, str]]
PARTS = 3
NEEDS_WRITTEN_ROWS = "trouble-suspect-version"
"""The cause of its close is seen with a row that a micro-batch before has written: see `ring_follower`."""


def place_of(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["capture"], row["packet"], row["start"]


def cut(path: Path, folder: Path, pieces: int) -> list[FileScan]:
    """The packets of a capture as several files."""
    blocks = packets(path)
    return cut_at(blocks, folder, [len(blocks) * number // pieces for number in range(1, pieces)])


def time_of(packet: Block) -> int:
    """Nanoseconds."""
    return int(np.frombuffer(packet.heads, "<i8")[1])


def cut_at(blocks: list[Block], folder: Path, edges: Sequence[int]) -> list[FileScan]:
    """Packets as several files, each with some. Files that begin at the same time have no order: they are one."""
    begins = {time_of(blocks[edge]): edge for edge in reversed(edges)}
    begins.pop(time_of(blocks[0]), None)
    plans = []
    for number, (low, high) in enumerate(pairwise([0, *sorted(begins.values()), len(blocks)])):
        some = blocks[low:high]
        file = folder / f"piece-{number}.pcapng"
        file.write_bytes(as_pcapng(some))
        plans.append(scan_file(str(file)))
    return plans


def as_pcapng(blocks: list[Block]) -> bytes:
    """A file of its own, with nanoseconds."""
    options = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
    parts = [pcapng_block("<", 0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    links: list[int] = []
    for each in blocks:
        _, time_ns, captured, length, link = np.frombuffer(each.heads, "<i8").tolist()
        if link not in links:
            links.append(link)
            parts.append(pcapng_block("<", 1, struct.pack("<HHI", link, 0, 0) + options))
        head = struct.pack("<IIIII", links.index(link), time_ns >> 32, time_ns & 0xFFFFFFFF, captured, length)
        parts.append(pcapng_block("<", 6, head + each.data + bytes(-captured % 4)))
    return b"".join(parts)


def dealt(plans: list[FileScan], first: int) -> dict[int, list[Block]]:
    """Blocks by part, packets counted from `first`."""
    found: dict[int, list[Block]] = defaultdict(list)
    for split in splits(plans):
        for each in route(split._replace(first=split.first + first), PARTS):
            found[each.part].append(each.block)
    return found


Made = list[tuple[str, dict[str, Any]]]


def described(made: Made) -> Rows:
    """All rows; but for what the client says it is in a request that may come later."""
    later = {"exchanges": ("software_name", "software_version"), "findings": ("nth", "replaces")}
    rows_of = [
        (table, {name: cell for name, cell in row.items() if cell is not None and name not in later.get(table, ())})
        for table, row in made
    ]
    places = [place_of(row) for table, row in made if table == "exchanges"]
    assert len(places) == len(set(places)), "a row that is there twice"
    return sorted((table, json.dumps(row, sort_keys=True, default=str)) for table, row in rows_of)


def found_in(notes: list[dict[str, Any]], origins: FileOrigins, making: IncrementalAggregation | None = None) -> Made:
    """Return the rows of cross-connection findings."""
    notes = sorted(notes, key=lambda cells: [cells[n] for n in ORDER])
    found_rows = findings_of(notes, origins) if making is None else findings_of(notes, origins, making.aggregate)
    return list(found_rows)


def of(table: str, made: Made) -> list[dict[str, Any]]:
    return [cells for name, cells in made if name == table]


def learned(parts: dict[int, list[Block]], secrets: bytes = b"") -> SharedState:
    return SharedState.merged(
        read_shared_state_of_whole(blocks, Partition(part, PARTS), secrets) for part, blocks in parts.items()
    )


def at_once(plans: list[FileScan], origins: FileOrigins, secrets: bytes = b"") -> Rows:
    parts = dealt(plans, 0)
    shared_state = learned(parts, secrets)
    made = (
        rows_of_whole(blocks, Partition(part, PARTS), shared_state, origins, WriteOptions(), secrets)
        for part, blocks in parts.items()
    )
    found = [row for each in made for row in separate(each)]
    tables = [(table, row) for table, row in found if table not in (TALLIES, OBSERVATIONS.name)]
    tables += found_in(of(OBSERVATIONS.name, found), origins)
    current = current_findings(of("findings", tables))
    return described([each for each in tables if each[0] != "findings"] + [("findings", row) for row in current])


@dataclass(frozen=True)
class Dealt(MicroBatchJob):
    """A micro-batch of which the blocks are given by partition."""

    parts: Mapping[int, list[Block]] = field(default_factory=dict)

    def blocks(self, partition: Partition) -> Iterator[Block]:
        return iter(self.parts[partition.number])

    def known(self, partition: Partition) -> SharedState:
        """What a partition knows once it has read its blocks."""
        found: list[SharedState] = []

        def share(capture: Capture) -> NoReturn:
            found.append(capture.connections.shared_state())
            raise EnoughError

        with suppress(EnoughError):
            next(self.rows(share, partition))
        return found[0]


class EnoughError(Exception):
    """Nobody asks for rows."""


def one_by_one(
    plans: list[FileScan], origins: FileOrigins, folder: Path, beforehand: SharedState | None = None,
    secrets: bytes = b"", looked_at: Callable[[bytes], object] = len,
) -> Rows:  # fmt: skip
    """As `MicroBatchRun` does it; or with what is learned later known `beforehand`. Each carry-over is `looked_at`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    tables: Made = []
    notes: list[dict[str, Any]] = []
    first, making, now_ns = 0, IncrementalAggregation(), 0
    partitions = [Partition(part, PARTS) for part in range(PARTS)]
    for each in plans:
        made: Made = []
        parts = dealt([each], first)
        first, now_ns = first + each.packets, max(now_ns, each.latest_ns)
        after = None if each is plans[-1] else folder
        job = Dealt([], origins, WriteOptions(), Output("", "", 1), secrets, folder, after, now_ns, parts)
        shared_state = beforehand or SharedState.merged(map(job.known, partitions))
        for partition in partitions:
            made += separate(job.rows(lambda _, known=shared_state: known, partition))
            if after is not None:
                looked_at((folder / str(partition.number)).read_bytes())
        making = from_nodes(to_nodes(making))
        upto = min(pickle.loads(tally["tally"]).oldest_pending for tally in of(TALLIES, made))
        notes += of(OBSERVATIONS.name, made)
        new = found_in([note for note in notes if note["packet"] < upto], origins, making)
        notes = [note for note in notes if note["packet"] >= upto]
        tables += [(table, row) for table, row in made if table not in (TALLIES, OBSERVATIONS.name)] + new
        tables += revisions_of(making.take_revisions(), origins)
    assert not notes
    findings = of("findings", tables)
    current = current_findings(findings)
    words = {(*place_of(row), row["code"], row["path"], row["message"]) for row in findings}
    replaced = [(*place_of(row), row["code"], row["path"], row["replaces"]) for row in findings if row["replaces"]]
    assert words.issuperset(replaced), "each replaces one that is there"
    assert len(set(replaced)) == len(replaced)
    return described([each for each in tables if each[0] != "findings"] + [("findings", row) for row in current])


def origins_of(plans: list[FileScan]) -> FileOrigins:
    firsts = [sum(each.packets for each in plans[:number]) for number in range(len(plans))]
    ranges = [Origin(first, each.digest, each.earliest_ns, 1) for first, each in zip(firsts, plans, strict=True)]
    return FileOrigins(ranges, [])


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(["java-1.3", "java-1.2-resumed"], "java-1.2-resumed"))
def test_an_encrypted_capture_in_pieces_is_decrypted_and_its_carry_overs_have_no_secret(
    name: str, tmp_path: Path
) -> None:
    bare, _, lines = parted(next(path for path in ENCRYPTED if path.stem == name), tmp_path)
    keys = KeyLog()
    keys.add_lines(lines)
    plans = cut(bare, tmp_path, pieces=3)
    origins = origins_of(plans)
    secrets = [secret for random in keys.client_randoms for secret in keys.secrets(random).values()]
    carried: list[bytes] = []
    found = one_by_one(
        plans, origins, tmp_path / "left", learned(dealt(plans, 0), keys.text), keys.text, carried.append
    )
    assert found == at_once(plans, origins, keys.text)
    assert sum(table == "exchanges" for table, _ in found) > 20
    assert len(carried) > len(plans)
    assert not [secret for secret in secrets if any(secret in each for each in carried)]


@pytest.mark.long
@pytest.mark.slow
@some_bundled
def test_rows_are_those_of_all_files_at_once(bundled: Path, tmp_path: Path) -> None:
    pieces = 1 if bundled.stem == NEEDS_WRITTEN_ROWS else (2, 3, 5)[CAPTURES.index(bundled) % 3]
    plans = cut(bundled, tmp_path, pieces)
    origins = origins_of(plans)
    whole = at_once(plans, origins)
    assert any(table == "connections" for table, _ in whole)
    assert one_by_one(plans, origins, tmp_path / "left") == whole


def ends(data: st.DataObject, blocks: list[Block]) -> list[int]:
    """Where files end."""
    return data.draw(st.lists(st.integers(1, len(blocks) - 1), max_size=12, unique=True).map(sorted))


@pytest.mark.long
@pytest.mark.slow
@costly(1)
@given(data=st.data(), path=st.sampled_from(CAPTURES))
def test_files_may_end_anywhere(tmp_path: Path, data: st.DataObject, path: Path) -> None:
    """Where few packets are between two ends, answers come late and holes open across several files."""
    blocks = packets(path)
    plans = cut_at(blocks, tmp_path, ends(data, blocks))
    origins = origins_of(plans)
    assert one_by_one(plans, origins, tmp_path / "left") == at_once(plans, origins)


@pytest.mark.long
@pytest.mark.slow
@costly(1)
@given(data=st.data(), chance=seeds)
def test_every_finding_is_made_wherever_files_end(tmp_path: Path, data: st.DataObject, chance: random.Random) -> None:
    """Clients that share topics, groups and producers; answers that take long, or never come. What brokers offer is
    known beforehand."""
    blocks = packets(Path(busy(tmp_path, chance)))
    plans = cut_at(blocks, tmp_path, ends(data, blocks))
    origins = origins_of(plans)
    assert one_by_one(plans, origins, tmp_path / "left", learned(dealt(plans, 0))) == at_once(plans, origins)


@pytest.mark.long
@pytest.mark.slow
@costly(1)
@given(data=st.data(), path=st.sampled_from(CAPTURES), chance=seeds)
def test_rows_over_a_bad_network_do_not_depend_on_where_files_end(
    tmp_path: Path, data: st.DataObject, path: Path, chance: random.Random
) -> None:
    """Packets lost, twice, in another order. Names are known beforehand, and what lone responses may be."""
    blocks = in_time(over_a_bad_network(packets(path), chance))
    plans = cut_at(blocks, tmp_path, ends(data, blocks))
    origins = origins_of(plans)
    assert one_by_one(plans, origins, tmp_path / "left", learned(dealt(plans, 0))) == at_once(plans, origins)


@pytest.mark.long
@pytest.mark.slow
def test_a_sasl_token_waits_for_the_response_that_a_lost_packet_holds_back(tmp_path: Path) -> None:
    """The mechanism is known with the response to SaslHandshake. That is behind a hole, and the file ends there."""
    blocks = packets(next(path for path in CAPTURES if path.stem == "plain-socket-sasl-v0"))
    lost, token = 5, 9
    plans = cut_at(blocks[:lost] + blocks[lost + 1 :], tmp_path, [token, token + 4])
    origins = origins_of(plans)
    whole = at_once(plans, origins)
    assert any("PLAIN token of the client" in row for _, row in whole)
    assert one_by_one(plans, origins, tmp_path / "left") == whole


def in_time(blocks: list[Block]) -> list[Block]:
    """Packets that came in this order: files follow one another."""
    times = sorted(int(np.frombuffer(each.heads, "<i8")[1]) for each in blocks)
    found = []
    for each, time_ns in zip(blocks, times, strict=True):
        heads = np.frombuffer(each.heads, "<i8").copy()
        heads[1] = time_ns
        found.append(each._replace(heads=heads.tobytes()))
    return found


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_connection_has_its_row_once(tmp_path: Path) -> None:
    """Open over many files, or closed in the middle of one."""
    path = next(path for path in CAPTURES if path.stem == "librdkafka-pipelined")
    plans = cut(path, tmp_path, 5)
    found = one_by_one(plans, origins_of(plans), tmp_path / "left")
    names = [json.loads(row)["connection"] for table, row in found if table == "connections"]
    assert sorted(names) == sorted({json.loads(row)["connection"] for table, row in found if table == "exchanges"})

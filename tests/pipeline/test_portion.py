"""Files read one after the other, in parts, give the rows of all files read at once: without Spark."""

import json
import pickle
import struct
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dissector.analysis.findings.notes import Making
from dissector.capture.parts import Block
from dissector.pipeline.notes import NOTES, ORDER, findings_of
from dissector.pipeline.origins import Origin
from dissector.pipeline.parts import TALLIES, Keeping
from dissector.pipeline.parts import lessons as lessons_of_whole
from dissector.pipeline.parts import rows as rows_of_whole
from dissector.pipeline.plan import Plan, plan
from dissector.pipeline.portion import Left, lessons, rows
from dissector.pipeline.segments import deal, segments
from dissector.session.lessons import Lessons
from dissector.transport.shares import Share
from tests.capture_file.test_carrying import packets
from tests.conftest import CAPTURES
from tests.pipeline.dealing import one_by_one as separate
from tests.traffic import block as pcapng_block

Rows = list[tuple[str, str]]
PARTS = 3


def cut(path: Path, folder: Path, pieces: int) -> list[Plan]:
    """The packets of a capture as several files."""
    blocks = packets(path)
    plans = []
    for number in range(pieces):
        some = blocks[len(blocks) * number // pieces : len(blocks) * (number + 1) // pieces]
        file = folder / f"piece-{number}.pcapng"
        file.write_bytes(as_pcapng(some))
        plans.append(plan(str(file)))
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


def dealt(plans: list[Plan], first: int) -> dict[int, list[Block]]:
    """Blocks by part, packets counted from `first`."""
    found: dict[int, list[Block]] = defaultdict(list)
    for segment in segments(plans):
        for each in deal(segment._replace(first=segment.first + first), PARTS):
            found[each.part].append(each.block)
    return found


def described(found: list[tuple[str, dict[str, Any]]]) -> Rows:
    """Without what the client says it is in a request that may come after the row was written."""
    later = ("software_name", "software_version")
    rows_of = [(table, row) for table, row in found if table not in (TALLIES, NOTES)]
    told = [(table, {k: v for k, v in row.items() if table != "exchanges" or k not in later}) for table, row in rows_of]
    return sorted((table, json.dumps(row, sort_keys=True, default=str)) for table, row in told)


def found_in(
    made: list[tuple[str, dict[str, Any]]], origins: list[Origin], making: Making | None = None
) -> list[tuple[str, dict[str, Any]]]:
    """What several connections tell, of the notes among rows."""
    notes = sorted((cells for table, cells in made if table == NOTES), key=lambda cells: [cells[n] for n in ORDER])
    told = findings_of(notes, origins) if making is None else findings_of(notes, origins, making.made)
    return [("findings", cells) for cells in told]


def at_once(plans: list[Plan], origins: list[Origin]) -> Rows:
    parts = dealt(plans, 0)
    taught = Lessons.together(lessons_of_whole(blocks, Share(part, PARTS)) for part, blocks in parts.items())
    made = (rows_of_whole(blocks, Share(part, PARTS), taught, origins, Keeping()) for part, blocks in parts.items())
    found = [row for each in made for row in separate(each)]
    return described(found + found_in(found, origins))


def one_by_one(plans: list[Plan], origins: list[Origin]) -> Rows:
    left = {part: Left().packed() for part in range(PARTS)}
    found: list[tuple[str, dict[str, Any]]] = []
    known: dict[int, Lessons] = {}
    first, making = 0, Making()
    for each in plans:
        some: list[tuple[str, dict[str, Any]]] = []
        parts = dealt([each], first)
        first += each.packets
        is_last = each is plans[-1]
        known |= {part: lessons(parts[part], Share(part, PARTS), Left.unpacked(left[part])) for part in range(PARTS)}
        taught = Lessons.together(known.values())
        for part in range(PARTS):

            def put(what: Left, part: int = part) -> None:
                left[part] = what.packed()

            before = Left.unpacked(left[part])
            made = rows(parts[part], Share(part, PARTS), before, taught, origins, Keeping(), None if is_last else put)
            some += separate(made)
        making = pickle.loads(pickle.dumps(making))
        found += some + found_in(some, origins, making)
    return described(found)


def origins_of(plans: list[Plan]) -> list[Origin]:
    firsts = [sum(each.packets for each in plans[:number]) for number in range(len(plans))]
    return [Origin(first, each.digest, each.earliest_ns) for first, each in zip(firsts, plans, strict=True)]


@pytest.mark.parametrize("pieces", [2, 5])
def test_rows_are_those_of_all_files_at_once(bundled: Path, tmp_path: Path, pieces: int) -> None:
    plans = cut(bundled, tmp_path, pieces)
    origins = origins_of(plans)
    whole = at_once(plans, origins)
    assert any(table == "connections" for table, _ in whole)
    assert one_by_one(plans, origins) == whole


@pytest.mark.parametrize("path", [each for each in CAPTURES if each.stem.startswith("trouble")], ids=lambda p: p.stem)
def test_findings_of_several_connections_are_made_over_portions(path: Path, tmp_path: Path) -> None:
    """Their words are those of the time when the row was written: what was found, and where, is compared."""
    plans = cut(path, tmp_path, 4)
    origins = origins_of(plans)
    assert findings(one_by_one(plans, origins)) == findings(at_once(plans, origins))


def findings(rows: Rows) -> list[tuple[Any, ...]]:
    found = (json.loads(row) for table, row in rows if table == "findings")
    return sorted((row["capture"], row["packet"], row["start"], row["code"]) for row in found)


def test_a_connection_has_its_row_once(tmp_path: Path) -> None:
    """Open over many files, or closed in the middle of one."""
    path = next(path for path in CAPTURES if path.stem == "librdkafka-pipelined")
    plans = cut(path, tmp_path, 9)
    found = one_by_one(plans, origins_of(plans))
    names = [json.loads(row)["connection"] for table, row in found if table == "connections"]
    assert sorted(names) == sorted({json.loads(row)["connection"] for table, row in found if table == "exchanges"})

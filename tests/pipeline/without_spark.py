"""A pipeline without Spark: files looked over, dealt out, read in parts; and what `show` has of the same files.

Rows of tables are turned back into the objects of `show --format json`, so that the two can be held against each other.
"""

import functools
import json
import pickle
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dissector.capture_session import Capture
from dissector.capture_session.tally import CaptureTally
from dissector.core.finding import Finding
from dissector.core.json_text import dumps
from dissector.exchange.silence_causes import SILENCE_CAUSES, UNANSWERED_CODE
from dissector.exchange.to_json import exchange_object
from dissector.index.shared_state import SharedState
from dissector.pipeline.file_scan import RANGE_PACKETS, scan_file
from dissector.pipeline.lone_files import rows_of_file
from dissector.pipeline.observations import ORDER, findings_of
from dissector.pipeline.origins import FileOrigins, origins
from dissector.pipeline.partition_rows import WriteOptions, read_shared_state, rows
from dissector.pipeline.splits import route, splits
from dissector.pipeline.tls_secrets import TlsSecrets
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.schema.loader import api
from dissector.tables.data_files import DataFile
from dissector.tables.packing import unpacked
from dissector.tables.row_batches import Cells, RowGroup, TableRow
from dissector.transport.partitions import Partition

KEPT = WriteOptions()
EPOCH = 1
Tables = dict[str, list[dict[str, Any]]]
Row = tuple[Any, ...]


def tables(
    paths: Sequence[str | Path], *, parts: int = 1, size: int = 1 << 30, most: int = RANGE_PACKETS,
    options: WriteOptions = KEPT, seed: int = 0, key_logs: Sequence[str] = (),
) -> Tables:  # fmt: skip
    """Rows by table. Whatever runs beside each other on a cluster comes in any order here."""
    chance = random.Random(seed)
    plans = [scan_file(str(path), most) for path in paths]
    found, held = splits(plans, size), TlsSecrets(key_logs)
    held.add_scans(plans)
    secrets = held.text
    dealt = defaultdict(list)
    for split in chance.sample(found, len(found)):
        for part, block in route(split, parts):
            dealt[part].append(block)
    for blocks in dealt.values():
        blocks.sort(key=lambda block: block.first)
    numbers = chance.sample(sorted(dealt), len(dealt))
    shared_state = SharedState.merged(
        _sent(read_shared_state(dealt[number], Partition(number, parts), secrets)) for number in numbers
    )
    made: Tables = defaultdict(list)
    for number in numbers:
        of_part = rows(
            dealt[number], Partition(number, parts), _sent(shared_state), origins(plans, found, EPOCH), options, secrets
        )
        for table, cells in one_by_one(of_part):
            made[table].append(cells)
    _find(made, origins(plans, found, EPOCH))
    parts_of = [pickle.loads(each["tally"]) for each in made["tallies"]]
    whole = CaptureTally.merged(
        [each for part in parts_of for each in part.shuffled], [part.tally for part in parts_of]
    )
    made["problems"] = [{"problem": each} for each in held.problems(whole, plans)]
    for each in plans:
        made["plans"].append({"plan": each})
        for table, cells in one_by_one(rows_of_file(each, options, EPOCH)) if each.is_read_alone else ():
            made[table].append(cells)
    return made


def one_by_one(made: Iterable[TableRow]) -> Iterator[tuple[str, Cells]]:
    """Tables and rows, those that came together by themselves."""
    for table, cells in made:
        if isinstance(cells, RowGroup):
            yield from ((table, with_headers(row)) for row in cells.rows)
        elif isinstance(cells, pa.Table):
            yield from ((table, row) for row in cells.to_pylist())
        else:
            yield table, cells


def with_headers(row: Cells) -> Cells:
    """A row of records as it is read back: its headers by name."""
    return row | {"headers": [{"key": key, "value": value} for key, value in row["headers"]]}


def read_back(folder: Path, file: DataFile) -> list[Cells]:
    """The rows of a file that a part wrote."""
    rows: list[Cells] = pq.ParquetFile(folder / file.path).read().to_pylist()
    return rows


def _find(made: Tables, places: FileOrigins) -> None:
    """What Spark does with the notes of parts: they are made findings of."""
    notes = sorted(made.pop("observations", []), key=lambda cells: [cells[name] for name in ORDER])
    for name, cells in findings_of(notes, places):
        made[name].append(cells)


def _sent(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def shown(paths: Sequence[str | Path], key_logs: Sequence[str] = ()) -> Counter[str]:
    """The objects of `show --format json`, without the numbers that they have in the capture as a whole."""
    return _shown(*(tuple((str(path), Path(path).stat().st_mtime_ns) for path in of) for of in (paths, key_logs)))


@functools.lru_cache(maxsize=2)
def _shown(files: tuple[tuple[str, int], ...], key_logs: tuple[tuple[str, int], ...]) -> Counter[str]:
    """Kept, as the same files are often dealt out in several ways."""
    with Capture([path for path, _ in files], key_logs=[path for path, _ in key_logs]) as capture:
        for _ in capture.read():
            pass
        for _ in capture.findings.examine():
            pass
        return Counter(_line(exchange_object(exchange)) for exchange in capture.exchanges())


def shown_by_tables(made: Tables) -> Counter[str]:
    """The same objects, made of the rows of tables."""
    findings = defaultdict(list)
    for each in made["findings"]:
        words = {name: each[name] for name in ("code", "severity", "path", "message")}
        findings[_where(each)].append(words)
    for words in findings.values():  # as the view of current findings does
        if any(each["code"] in SILENCE_CAUSES for each in words):
            words[:] = [each for each in words if each["code"] != UNANSWERED_CODE]
    places = Counter(map(_where, made["exchanges"]))
    assert not [where for where, count in places.items() if count > 1], "rows that cannot be distinguished"
    assert findings.keys() <= places.keys()
    bodies = {_where(each): each for each in made["bodies"]}
    assert bodies.keys() == places.keys()
    connections = {each["connection"]: each for each in made["connections"]}
    whole = (
        bodies[_where(each)] | each | {"tls": _tls(connections.get(each["connection"]))} for each in made["exchanges"]
    )
    return Counter(_line(_object(each, findings[_where(each)])) for each in whole)


def _where(cells: dict[str, Any]) -> Row:
    return cells["capture"], cells["packet"], cells["start"]


def _object(cells: dict[str, Any], findings: list[dict[str, Any]]) -> dict[str, Any]:
    if cells["kind"] != "exchange":
        names = ("kind", "client", "server", "time_ns")
        present = {name: cells[name] for name in names if cells[name] is not None}
        return present | json.loads(cells["rest"]) | {"findings": findings}
    names = ("kind", "client", "server", "api_key", "api_version", "correlation_id", "client_id", "latency_ns",
             "request_transfer_ns", "wait_ns", "response_transfer_ns")  # fmt: skip
    made = {name: cells[name] for name in names} | {"api": None if cells["api"] == "?" else cells["api"]}
    known = api(cells["api_key"]) if cells["api_key"] is not None else None
    for side in ("request", "response"):
        made[side] = value = json.loads(cells[side]) if cells.get(side) is not None else None
        name = None if known is None else known.request if side == "request" else known.response
        if value and value["body"] and name in RECORDS_FIELDS:
            made[side] = value | {"body": unpacked(value["body"], name)}
    return made | cells["tls"] | {"findings": findings}


def _tls(connection: dict[str, Any] | None) -> dict[str, Any]:
    """What an exchange says of the TLS of its connection."""
    if connection is None or connection.get("tls_state") is None:
        return {}
    names = ("version", "cipher", "sni", "alpn", "principal", "resumed", "state")
    return {"tls": {name: connection[f"tls_{name}"] for name in names}}


def _line(made: dict[str, Any]) -> str:
    """An object as text that is the same for the same object."""
    plain = {name: value for name, value in made.items() if name not in ("number", "connection", "file", "findings")}
    whole = dumps(plain | {"findings": sorted(made["findings"], key=lambda each: sorted(each.items()))})
    return json.dumps(json.loads(whole), sort_keys=True)


def differences(one: Counter[str], other: Counter[str]) -> Iterator[str]:
    """What only one of them has, cut to be read."""
    for mark, lines in (("-", one - other), ("+", other - one)):
        for line in sorted(lines.elements())[:3]:
            yield f"{mark} {line[:600]}"


def problems(made: Tables) -> list[Finding]:
    """Problems of the packets of all files together."""
    return [each["problem"] for each in made["problems"]]

"""Reader speed: plain values out of bodies and record batches, ours and our peers' in turn, medians of many rounds.

CPU time of the one thread that works: what else the machine does counts for nobody.
"""

import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dissector.core.arrays import Int64, UInt8
from dissector.protocol.codec.plan import ArrayPlan, FieldPlan, ScalarPlan, StructPlan, TypePlan, VariablePlan, plan
from dissector.protocol.codec.reader import reader
from dissector.protocol.codec.writer import default, write_value
from dissector.protocol.records.batch import Batch
from dissector.protocol.records.column_reader import RecordReader
from dissector.protocol.records.columns import valid_checksums
from dissector.protocol.records.compression import CODECS
from dissector.protocol.records.from_json import batch_bytes
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.schema.loader import apis
from tools.benchmarks import peers
from tools.benchmarks.frames import TIMES, Frames

APIS: Final = ("Produce", "Fetch", "Metadata", "JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch",
               "FindCoordinator", "ListOffsets", "ApiVersions")  # fmt: skip
ROUNDS: Final = 15
SECONDS: Final = 0.01
"""Of one round of one reader."""
ELEMENTS: Final = 5
RECORDS: Final = 1_000
BATCHES: Final = 20

Work = Callable[[], object]


def times(works: dict[str, Work]) -> dict[str, float]:
    """Microseconds of each, the median of rounds in which they take turns."""
    counts = {name: max(1, int(SECONDS / _once(work))) for name, work in works.items()}
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            start = time.thread_time()
            for _ in range(counts[name]):
                work()
            found[name].append((time.thread_time() - start) / counts[name])
    return {name: 1e6 * statistics.median(rounds) for name, rounds in found.items()}


def _once(work: Work) -> float:
    work()
    start = time.thread_time()
    work()
    return time.thread_time() - start


def typical(layout: TypePlan, field: FieldPlan | None = None, *, request: bool) -> Any:
    """A value as traffic has it: some elements an array, short strings, small numbers, no unknown tags. Null are the
    strings that may be, and in responses the arrays that may be (aborted transactions)."""
    match layout:
        case StructPlan():
            return {each.name: typical(each.type, each, request=request) for each in layout.fields}
        case ArrayPlan():
            null = layout.nullable and not request
            return None if null else [typical(layout.element, request=request) for _ in range(ELEMENTS)]
        case VariablePlan(type="string"):
            return "orders-eu-17" if field is None or not layout.nullable else None
        case VariablePlan(type="records"):
            return batch()
        case VariablePlan():
            return b"0123456789abcdef"
        case ScalarPlan(type="uuid"):
            return "AAAAAAAAAAAAAAAAAAAAAQ"
        case ScalarPlan() if field is not None:
            return default(field)
        case ScalarPlan():
            return 7


def batch(codec: int = 0, count: int = ELEMENTS) -> bytes:
    """Records of about a hundred bytes."""
    start = 1_700_000_000_000
    records = [
        {"offset": n, "timestamp": start + n // 10, "key": b"customer-%d" % (n % 97), "value": b"%032d" % (n * n) * 2}
        for n in range(count)
    ]
    return batch_bytes({"attributes": codec, "base_timestamp": start, "records": records})


def _common_version(key: int, ours: int, message: str, *, request: bool) -> int:
    """The newest version that all have."""
    version = min(ours, int(peers.kafka_python_class(message).max_version))
    while version:
        try:
            peers.kio_class(key, version, request=request)
        except Exception:  # its own error for a version that it lacks
            version -= 1
        else:
            break
    return version


def bodies() -> None:
    """Requests and responses."""
    print(f"\nreaders, µs a body (medians of {ROUNDS} rounds){'':9}ours  kafka-python       kio    times as fast")
    for api in (each for name in APIS for each in apis() if each.name == name):
        for request, message in ((True, api.request), (False, api.response)):
            version = _common_version(api.key, api.versions.high, message, request=request)
            layout = plan(message, version)
            data = write_value(layout, typical(layout, request=request))
            read = reader(message, version)
            works: dict[str, Work] = {"ours": lambda read=read, data=data: read(data, 0, len(data))}
            for name, peer in (
                ("kafka-python", peers.kafka_python(message, version)),
                ("kio", peers.kio(api.key, version, request=request)),
            ):
                works[name] = lambda peer=peer, data=data: peer(data)
            line(f"{message} v{version}, {len(data):,} bytes", works)


def line(title: str, works: dict[str, Work]) -> None:
    """One row: times, and by how much ours is ahead."""
    found = times(works)
    ours = found["ours"]
    ratios = " ".join(f"{found[name] / ours:.2f}" if name in found else "-" for name in ("kafka-python", "kio"))
    cells = "".join(
        f"{found[name]:14.1f}" if name in found else f"{'-':>14}" for name in ("ours", "kafka-python", "kio")
    )
    print(f"  {title:44}{cells}    {ratios}", flush=True)


def batches() -> None:
    """Record batches of each codec. kio does not decompress."""
    default_records = importlib.import_module("kafka.record.default_records")
    kio_readers = importlib.import_module("kio.records.readers")
    print(f"\nrecord batches of {RECORDS:,} records, µs a batch")
    for number, codec in CODECS.items():
        data = batch(number, RECORDS)
        works: dict[str, Work] = {
            "ours": lambda data=data: Batch.read(data).records(frame_budget()),
            "kafka-python": lambda data=data: list(default_records.DefaultRecordBatch(data)),
        }
        if not number:
            works["kio"] = lambda data=data: kio_readers.read_batch(data, 0)
        line(f"{codec.name}, {len(data):,} bytes", works)


def columns() -> None:
    """Many batches of each codec at once: ours into columns, their checksums verified; kafka-python's as objects, its
    checksums not verified."""
    default_records = importlib.import_module("kafka.record.default_records")
    reader = RecordReader()
    print(f"\n{BATCHES} record batches of {RECORDS:,} records, ours in columns, µs all together")
    for number, codec in CODECS.items():
        one = batch(number, RECORDS)
        ends = np.arange(1, BATCHES + 1) * len(one)
        fields = np.frombuffer(one * BATCHES, np.uint8), ends - len(one), ends, ends

        def read(fields: tuple[UInt8, Int64, Int64, Int64] = fields) -> None:
            for step in reader.read(*fields):
                valid_checksums(fields[0], step.entries)

        works: dict[str, Work] = {
            "ours": read,
            "kafka-python": lambda one=one: [list(default_records.DefaultRecordBatch(one)) for _ in range(BATCHES)],
        }
        line(f"{codec.name}, {len(one):,} bytes a batch", works)


def frames() -> None:
    """All real frames at once."""
    real = Frames()
    found = times({"ours": real.to_columns, "kio": real.to_objects})
    ours, kio = (1_000 * found[name] / len(real) for name in ("ours", "kio"))
    print(f"\n{len(real):,} frames of all recordings, of {real.layouts} layouts, ns a frame")
    print(f"  ours in columns {ours / TIMES:,.0f}, kio in objects {kio:,.0f}: {TIMES * kio / ours:.1f} times as fast")


def main() -> None:
    problem = peers.install()
    if problem:
        print(f"\nno readers to compare with: {problem}")
        return
    bodies()
    batches()
    columns()
    frames()


if __name__ == "__main__":
    main()

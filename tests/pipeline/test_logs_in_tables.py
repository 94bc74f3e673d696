"""Files of every form in one folder of tables: what is printed of them is what `show` prints of them, to the byte."""

import hashlib
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import PCAPS, some_of

pytest.importorskip("duckdb", reason="NOT TESTED with DuckDB: it is not installed")

import pyarrow as pa
from deltalake import write_deltalake

from dissector.capture import CaptureError
from dissector.capture_session import Capture
from dissector.cli.formats import Format
from dissector.cli.render.printing import RowRenderer
from dissector.cli.show import show
from dissector.cli.tables import open_tables, rendered, summary
from dissector.filter import parse
from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.tables.reader import Tables
from tests.pipeline.rolling import packets, pcap
from tests.pipeline.test_lone_files import LOGS, of, transcript
from tests.tables.conftest import tables_of
from tests.tables.test_row_to_exchange import READ_INDEXES

pytestmark = pytest.mark.slow
CAPTURES = ("java", "aiokafka")


class Made(NamedTuple):
    """Tables, and the files that they are of."""

    tables: Tables
    logs: list[Path]
    captures: list[Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """All files of Kafka's own; captures with times, without, and of times that are made up; one that is nothing."""
    folder = tmp_path_factory.mktemp("logs")
    captures = [PCAPS / f"{name}.pcapng" for name in CAPTURES]
    captures.append(of(folder, pcap([each._replace(time_ns=0) for each in packets(captures[0])]), "timeless.pcap"))
    captures.append(of(folder, transcript().encode(), "transcript.hex"))
    nothing = of(folder, b"nothing that anybody knows", "nothing")
    logs = [*LOGS, *READ_INDEXES]
    files = [nothing, *captures, *logs]
    ingest_here([str(file) for file in files], str(folder / "tables"), WriteOptions())
    return Made(tables_of(str(folder / "tables")), in_order(logs), captures)


def in_order(logs: list[Path]) -> list[Path]:
    """As tables have them: by their first time, then their last, then by their hash."""
    keys = {}
    for log in logs:
        with Capture([str(log)]) as capture:
            times = [exchange.row.time_ns for exchange in capture.exchanges()]
        keys[log] = (times[0], max(times[0], times[-1]), hashlib.sha256(log.read_bytes()).hexdigest())
    return sorted(logs, key=keys.__getitem__)


def printed(tables: Tables, printing: RowRenderer, text: str | None = None) -> bytes:
    found = rendered(tables, printing, None if text is None else parse(text))
    return b"".join(piece for _, pieces in found for piece in pieces)


def shown(files: list[Path], form: Format, filter: str | None = None) -> bytes:
    out = TextIOWrapper(BytesIO())
    with redirect_stdout(out):
        show([str(file) for file in files], form, None, filter=filter)
    out.flush()
    assert isinstance(out.buffer, BytesIO)
    return out.buffer.getvalue()


@pytest.mark.long
@pytest.mark.parametrize("form", some_of([Format.TEXT, Format.JSON, Format.CSV], Format.JSON))
def test_everything_is_printed_as_show_prints_it(made: Made, form: Format) -> None:
    """Numbers, connections, times since the first, keys and their order, bytes as hex."""
    printing = RowRenderer.of(form, None)
    found = printing.head + printed(made.tables, printing)
    assert found.splitlines() == shown([*made.logs, *made.captures], form).splitlines()


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    some_of(
        [
            "kind == batch",
            "producer_id > 0",
            "conn == 2",
            "time > 1s && kind == index",
            "batches.records.value contains teapot",
        ],
        "time > 1s && kind == index",
        "batches.records.value contains teapot",
    ),
)
def test_a_filter_finds_the_same_entries(made: Made, text: str) -> None:
    found = printed(made.tables, RowRenderer.of(Format.JSON, None), text)
    assert found == shown([*made.logs, *made.captures], Format.JSON, text)
    assert found


def test_tables_of_another_make_are_one_line(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "captures", pa.table({"digest": ["0" * 64], "path": ["a"]}))
    with pytest.raises(CaptureError, match="kdissect did not write this table"), open_tables(str(tmp_path)):
        pass
    with pytest.raises(CaptureError, match="no such folder"), open_tables(str(tmp_path / "nowhere")):
        pass


@pytest.mark.long
def test_the_last_line_says_how_much_there_was_and_where_problems_are(made: Made) -> None:
    files = len(made.logs) + len(made.captures) + 1
    words = summary("tables", made.tables, 7)
    assert words.startswith(f"tables: 7 rows of {files} captures; ")
    assert words.endswith(": kdissect tables list tables -f json shows them")

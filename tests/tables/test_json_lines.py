"""Lines of JSON that SQL and the kernel make of stored messages are those of the exchanges of the rows."""

from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

pytest.importorskip("duckdb", reason="NOT TESTED with DuckDB: it is not installed")

from dissector.core.json_text import dumps
from dissector.exchange.to_json import json_line
from dissector.filter import parse
from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.protocol.records.to_json import records_object
from dissector.tables.json_lines import json_lines
from dissector.tables.record_texts import is_understood, with_records
from tests.conftest import PCAPS, some_of
from tests.tables.conftest import tables_of

if TYPE_CHECKING:
    from dissector.tables.reader import Tables

WITH_RECORDS = ("java", "java-transactions", "kafka-python-as-0.10", "librdkafka", "java-sasl-plain", "kraft-quorum")
"""Compressed ones, transactions and their markers, message sets, logins, the metadata log."""
MESSAGE = bytes.fromhex("000000000000000100000010000000000000ffffffff000000026162")
"""Of the oldest format."""
OTHER_OPTIONS = (WriteOptions(frames=True), WriteOptions(records=False))


def lines(tables: "Tables", text: str | None = None, most: int | None = None) -> list[bytes]:
    found = json_lines(tables, None if text is None else parse(text), most)
    return b"".join(bytes(piece) for _, pieces in found for piece in pieces).splitlines(keepends=True)


@pytest.fixture(
    scope="module",
    params=[WriteOptions(), *(pytest.param(each, marks=pytest.mark.exhaustive) for each in OTHER_OPTIONS)],
)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "Tables":
    folder = str(tmp_path_factory.mktemp("lines") / "tables")
    ingest_here([str(PCAPS / f"{name}.pcapng") for name in WITH_RECORDS], folder, request.param)
    return tables_of(folder)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    some_of([None, "api == Produce", "response.throttle_time_ms >= 0 && topic", "latency > 1h"], None, "latency > 1h"),
)
def test_lines_are_those_of_the_exchanges(made: "Tables", text: str | None) -> None:
    wanted = list(map(json_line, made.exchanges(None if text is None else parse(text))))
    assert lines(made, text) == wanted
    assert lines(made, text, 2) == wanted[:2]
    assert bool(wanted) == (text != "latency > 1h")


@pytest.mark.long
@pytest.mark.slow
def test_rows_are_counted_as_they_are_written(made: "Tables") -> None:
    assert sum(rows for rows, _ in json_lines(made, None, None)) == made.counted()


def _packed(data: bytes, heads: str = "") -> bytes:
    return f'{{"size":{len(data)},"batches":[{heads}],"bytes":"{data.hex()}"}}'.encode()


def test_what_the_kernel_leaves_is_written_by_python() -> None:
    """No batch at all, and a message of the oldest format, between others."""
    fields = (b"", b"ab", MESSAGE, 3 * MESSAGE)
    text = b"[" + b",".join(map(_packed, fields)) + b"]"
    assert is_understood(text)
    assert b"".join(with_records(text)) == b"[" + b",".join(dumps(records_object(each)) for each in fields) + b"]"


def test_what_is_decoded_beside_the_bytes_is_not_lost() -> None:
    """A message without its value, as tables have those of the oldest format, and one that stays decoded."""
    whole = records_object(MESSAGE)
    [decoded] = whole["batches"]
    kept = decoded | {"value": "6b657074"}
    heads = (dumps({"offset": 1, "magic": 0}), dumps(kept))
    text = b"[" + b",".join(_packed(MESSAGE, head.decode()) for head in heads) + b"]"
    assert is_understood(text)
    first, second = orjson.loads(b"".join(with_records(text)))
    assert first == orjson.loads(dumps(whole))
    assert second["batches"] == [orjson.loads(dumps(kept))]


def test_other_lines_are_put_in_between() -> None:
    field = _packed(b"")
    text, written = field + b"\n" + field + b"\n", dumps(records_object(b""))
    others = [(0, 0, b"a\n"), (len(field) + 1, len(text), b"b\n")]
    assert b"".join(with_records(text, others)) == b"a\n" + written + b"\nb\n"


def test_what_is_packed_elsewhere_is_not_understood() -> None:
    assert not is_understood(b'{"batches":[],"bytes":"00"}')


def test_a_text_that_looks_packed_is_a_text() -> None:
    assert is_understood(dumps({"client_id": '{"size":0,"batches":[],"bytes":"00"}'}))
    assert b"".join(with_records(dumps({"client_id": '"bytes":"00"'}))) == dumps({"client_id": '"bytes":"00"'})


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "client",
    some_of(
        ["plain", 'say "so" \\\\ it\'s', "\x1b[31m\x7f", "\u202eevil", "Zo\u00eb", "}}"],
        'say "so" \\\\ it\'s',
        "\x1b[31m\x7f",
    ),
)
def test_hostile_texts_are_escaped_as_elsewhere(client: str, tmp_path: Path) -> None:
    name = client.encode()
    request = bytes.fromhex("0012000000000001") + len(name).to_bytes(2, "big") + name
    frames = ((">", request), ("<", bytes.fromhex("00000001000000000000")))
    path = tmp_path / "a.hex"
    path.write_text("".join(f"{mark} {len(data):08x}{data.hex()}\n" for mark, data in frames))
    ingest_here([str(path)], str(tmp_path / "tables"), WriteOptions())
    tables = tables_of(str(tmp_path / "tables"))
    [line] = lines(tables)
    assert [line] == list(map(json_line, tables.exchanges()))
    assert b"\x1b" not in line
    assert b"\x7f" not in line
    assert "\u202e" not in line.decode()
    assert orjson.loads(line)["client_id"] == client

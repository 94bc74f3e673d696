"""`kdissect records`, as users of kcat and kafka-console-consumer meet it."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from dissector.analysis.record_list import RecordList
from dissector.export import record_parquet
from tests.analysis.test_record_list import opened
from tests.cli.test_commands import JAVA, kdissect
from tests.conftest import PCAPS
from tests.needs import needs
from tests.terminal import run_on_terminal
from tests.traffic import capture_of, conversation, exchanges

ORDERS, SCHEMAS = str(PCAPS / "records/orders.pcapng"), str(PCAPS / "records/schemas")
SEGMENT = str(PCAPS / "segments/rdkafka-codecs-0/00000000000000000000.log")


def printed(*words: str) -> list[str]:
    done = kdissect("records", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines()


def test_a_line_has_place_time_key_value_and_headers() -> None:
    line = printed(ORDERS, "-Y", "record.value.order.id == 17 && api == Fetch")[0]
    place, time, key, rest = line.split(" ", 3)
    assert (place, key) == ("orders-0@2", "order-17")
    assert time.endswith("Z")
    assert rest.startswith('{"order":{"id":17,')
    assert rest.endswith("tenant=shop]")


def test_json_has_values_opened_by_schemas() -> None:
    lines = [json.loads(line) for line in printed(ORDERS, "--schemas", SCHEMAS, "-f", "json", "-Y", "api == Fetch")]
    by_format = {}
    for each in lines:
        by_format.setdefault((each["topic"], each.get("value_format")), each)
    avro = by_format["orders-avro", "avro"]
    assert avro["value"]["lines"] == [{"sku": "teapot", "count": 15}]
    assert (avro["value"]["total"], avro["value_schema"]) == ("15.99", "schema 7 shop.Order")
    assert by_format["shipments", "protobuf"]["value"]["carrier"] == "BIKE"
    assert by_format["orders-cdc", "json"]["value_envelope"] == "Debezium update"
    assert by_format["odd", "bytes"]["findings"][0]["code"] == "unreadable-value"
    assert by_format["orders-cdc", None]["value"] is None
    assert lines[0]["exchange"]["api"] == "Fetch"


@pytest.mark.long
def test_columns_are_fields_of_records_and_of_their_exchanges() -> None:
    fields = "topic,offset,value.order.id,headers.tenant,headers.none,api"
    assert printed(ORDERS, "--fields", fields, "-Y", "topic == orders", "--limit", "1") == [
        "orders\t+0\t15\tshop\t\tProduce"
    ]
    rows = [json.loads(line) for line in printed(ORDERS, "--fields", fields, "-Y", "topic == orders", "-f", "json")]
    assert rows[0]["value.order.id"] == 15
    assert b"did you mean offset" in kdissect("records", ORDERS, "--fields", "offst").stderr


def test_csv_has_a_heading_and_escapes_formulas(tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO("\n".join(printed(JAVA, "-f", "csv")))))
    assert (rows[0]["topic"], rows[0]["key"], len(rows)) == ("java-orders", "customer-0", 200)
    assert printed(JAVA, "-f", "csv", "--escape-formulas", "--limit", "1")[1].startswith('"java-orders",')
    assert "'+0" in printed(JAVA, "-f", "csv", "--escape-formulas", "--limit", "1")[1]
    assert kdissect("records", JAVA, "--escape-formulas").returncode == 2


@pytest.mark.long
def test_files_are_written_by_their_suffix(tmp_path: Path) -> None:
    for name in ("r.jsonl", "r.csv", "r.parquet", "r.bin", "r.txt"):
        done = kdissect("records", JAVA, "-w", str(tmp_path / name))
        assert (done.returncode, done.stdout) == (0, b"")
        assert b"200 records" in done.stderr
    table = pyarrow.parquet.read_table(tmp_path / "r.parquet").to_pylist()
    assert len(table) == len((tmp_path / "r.jsonl").read_text().splitlines()) == 200
    assert (table[0]["key"], table[0]["exchange"], table[0]["value_format"]) == (b"customer-0", 9, "text")
    assert (tmp_path / "r.bin").read_bytes().startswith(table[0]["value"] + b"\n" + table[1]["value"])
    assert b"choose a format with --format" in kdissect("records", JAVA, "-w", str(tmp_path / "r.what")).stderr
    copy = tmp_path / "c.pcapng"
    copy.write_bytes(Path(JAVA).read_bytes())
    assert b"is an input" in kdissect("records", str(copy), "-f", "text", "-w", str(copy)).stderr


def test_a_table_of_large_records_is_written_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the least and greatest contents, for which they would be copied."""
    monkeypatch.setattr(record_parquet, "GROUP_BYTES", 1_000)
    with opened(Path(JAVA)) as capture:
        pieces = record_parquet.parquet_pieces(capture, RecordList(capture).records())
        (tmp_path / "r").write_bytes(b"".join(pieces))
    written = pyarrow.parquet.ParquetFile(tmp_path / "r").metadata
    of_columns = [written.row_group(0).column(number) for number in range(written.num_columns)]
    counted = {each.path_in_schema for each in of_columns if each.statistics is not None}
    assert (written.num_rows, written.num_row_groups) == (200, 20)
    assert {"offset", "exchange"} <= counted
    assert not {"key", "value", "value_json"} & counted


def test_a_segment_and_a_pipe_have_records(tmp_path: Path) -> None:
    assert printed(SEGMENT)[0].startswith("rdkafka-codecs-0@0 ")
    done = kdissect("records", "-", data=Path(JAVA).read_bytes())
    assert sorted(done.stdout.splitlines()) == sorted(line.encode() for line in printed(JAVA))
    none = kdissect("records", capture_of(tmp_path, conversation(exchanges(2))))
    assert (none.returncode, none.stdout) == (1, b"")
    assert b"no records in 2 rows" in none.stderr
    assert b"no record matches" in kdissect("records", JAVA, "-Y", "record.offset > 1000").stderr


def test_bad_use_is_one_line() -> None:
    for words in (
        ("--schemas", "/nowhere"), ("--schemas", str(PCAPS)), ("-Y", "record.valu == 1"),
        ("-f", "raw", "--fields", "key"), ("--schemas", "ftp://x"),
    ):  # fmt: skip
        done = kdissect("records", JAVA, *words)
        assert done.returncode == 2
        assert done.stderr.startswith(b"kdissect: ")
        assert b"Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.slow
def test_a_closed_pipe_ends_it_quietly() -> None:
    needs("bash")
    words = "{ python -m dissector.cli.main records $1; echo $? >&2; } | head -1"
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", words, "bash", ORDERS], capture_output=True, text=True, check=True, env=env)
    assert (len(done.stdout.splitlines()), done.stderr) == (1, "0\n")


def test_bytes_as_they_are_go_to_no_terminal() -> None:
    written = run_on_terminal("dissector.cli.main", ["records", JAVA, "-f", "raw"])
    assert b"a terminal takes text" in written
    assert b"teapot" not in written

"""`show --fields` and CSV: what the JSON object has, a column a name."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from dissector.exchange.row_fields import json_fields
from tests.cases import cases
from tests.cli.test_commands import JAVA, TRANSACTIONS, kdissect
from tests.conftest import PCAPS
from tests.traffic import Turn, capture_of, conversation, request, response


def objects(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in kdissect("show", path, "--format", "json").stdout.splitlines()]


def fields(path: str, names: str, *more: str) -> list[list[str]]:
    done = kdissect("show", path, "--fields", names, *more)
    assert (done.returncode, done.stderr) == (0, b"")
    return [line.split("\t") for line in done.stdout.decode().splitlines()]


def at(value: Any, path: str) -> str:
    for name in path.split("."):
        value = value.get(name) if value is not None else None
    return "" if value is None else str(value)


@pytest.mark.long
@pytest.mark.slow
def test_a_column_has_what_the_json_has() -> None:
    names = [*json_fields(), "request.time_ns", "request.size", "response.time_ns", "response.size"]
    for path in (JAVA, TRANSACTIONS, str(PCAPS / "librdkafka-acks0.pcapng")):
        assert fields(path, ",".join(names)) == [[at(each, name) for name in names] for each in objects(path)]


def test_paths_lead_into_headers_and_bodies() -> None:
    names = "request.header.client_id,response.body.error_code,request.body.acks"
    expected = [[at(each, name) for name in names.split(",")] for each in objects(JAVA)]
    assert fields(JAVA, names) == expected
    assert {row[2] for row in expected} == {"", "-1"}


@pytest.mark.long
def test_any_element_of_an_array_counts_and_the_body_goes_without_saying() -> None:
    topic_names = [",".join(t["name"] for t in (each["response"]["body"].get("topics") or ()) if t.get("name"))
            for each in objects(JAVA)]  # fmt: skip
    assert any(topic_names)
    assert [row[0] for row in fields(JAVA, "response.body.topics.name")] == topic_names
    assert [row[0] for row in fields(JAVA, "response.topics.name")] == topic_names


def test_paths_lead_into_record_batches_and_embedded_formats() -> None:
    found = fields(JAVA, "api,request.topic_data.partition_data.records.batches.records.value")
    values = {row[1] for row in found if row[0] == "Produce"}
    assert values
    assert all(bytes.fromhex(value) for each in values for value in each.split(",") if value)
    groups = fields(str(PCAPS / "java-classic.pcapng"), "request.protocols.metadata_decoded.topics,api")
    assert any(topics for topics, api in groups if api == "JoinGroup")


def test_words_and_findings_are_those_of_the_list() -> None:
    for (words, codes), each in zip(fields(TRANSACTIONS, "info,findings"), objects(TRANSACTIONS), strict=True):
        assert words.isprintable()
        assert codes == ",".join(finding["code"] for finding in each["findings"])


def test_csv_has_a_line_of_names_and_quotes_what_must_be(tmp_path: Path) -> None:
    turns = [Turn(True, request(1, client_id=b'a,"b"')), Turn(False, response(1))]
    path = capture_of(tmp_path, conversation(turns))
    rows = list(
        csv.reader(io.StringIO(kdissect("show", path, "-f", "csv", "--fields", "client_id,kind").stdout.decode()))
    )
    assert rows == [["client_id", "kind"], ['a,"b"', "exchange"]]
    [names, row] = csv.reader(io.StringIO(kdissect("show", path, "--format", "csv").stdout.decode()))
    assert dict(zip(names, row, strict=True))["client_id"] == 'a,"b"'


@pytest.mark.parametrize("form", ["text", "csv"])
def test_words_of_the_wire_stay_in_their_cell(tmp_path: Path, form: str) -> None:
    turns = [Turn(True, request(1, client_id=b"a\tb\nc\x1b[2J")), Turn(False, response(1))]
    done = kdissect("show", capture_of(tmp_path, conversation(turns)), "-f", form, "--fields", "client_id,number")
    assert done.stdout.decode().splitlines()[-1] in ("a␉b␊c␛[2J\t1", "a␉b␊c␛[2J,1")


@pytest.mark.long
@cases(
    ("names", "near"),
    [
        ("api_kye", b"api_key"),
        ("latnecy", b"latency"),
        ("conection", b"connection"),
        ("request.body.topics.nam", b"request.body.topics.name"),
        ("response.header.correlation", b"response.header.correlation_id"),
        ("number,,api", b"number"),
        ("request.size.x", b"request.size"),
    ],
)
def test_a_wrong_name_gets_the_nearest_right_ones(names: str, near: bytes) -> None:
    done = kdissect("show", JAVA, "--fields", names)
    assert (done.returncode, done.stdout) == (2, b"")
    assert near in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_trees_and_objects_have_no_columns() -> None:
    done = kdissect("show", JAVA, "--fields", "api", "--format", "json")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"\n") == 1


FORMULAS = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "=a;=b", "\uff1d1"]


def test_formulas_are_escaped_for_spreadsheets(tmp_path: Path) -> None:
    turns = [turn for n, text in enumerate((*FORMULAS, "-1", "1+1", 'a"b')) for turn in (
        Turn(True, request(n, client_id=text.encode())), Turn(False, response(n)))]  # fmt: skip
    path = capture_of(tmp_path, conversation(turns))
    printed = kdissect(
        "show", path, "-f", "csv", "--escape-formulas", "--fields", "number,client_id,api_version"
    ).stdout
    _, *rows = csv.reader(io.StringIO(printed.decode()))
    texts = [text for _, text, _ in rows]
    assert texts == [
        "'=1+1", "'+1+1", "'-1+1", "'@SUM(A1)", "␉=1", "␍=1", "'=a;=b", "'\uff1d1", "-1", "1+1", 'a"b'
    ]  # fmt: skip
    assert b'7,"\'=a;=b",0\n' in printed  # in quotes: a spreadsheet may separate cells at semicolons
    assert b"=1+1,0\n" in kdissect("show", path, "-f", "csv", "--fields", "client_id,api_version").stdout
    table = kdissect("show", path, "-f", "csv", "--escape-formulas").stdout.decode()
    assert all(row["client_id"] == text for row, text in zip(csv.DictReader(io.StringIO(table)), texts, strict=True))


@cases("words", [(), ("--fields", "api"), ("-f", "json")])
def test_formulas_are_escaped_in_csv_only(words: tuple[str, ...]) -> None:
    done = kdissect("show", JAVA, "--escape-formulas", *words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"kdissect: --escape-formulas needs --format csv\n"

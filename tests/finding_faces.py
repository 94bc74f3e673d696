"""The findings of a capture as each face has them: one event is one finding, in the same words, wherever one looks."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import dissector
from dissector.capture_session import Capture
from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from tests.cli.test_commands import kdissect
from tests.pipeline.contents import rows_that_count
from tui.findings_model import FindingsModel


class Told(NamedTuple):
    """A finding of a row."""

    client: str
    code: str
    severity: str
    path: str
    message: str


Tolds = Counter[Told]


def of_python(path: str) -> Tolds:
    with dissector.open(path) as capture:
        return Counter(
            Told(exchange.client, each.code, each.severity.value, each.path, each.message)
            for exchange, each in capture.findings()
        )


def of_json(path: str) -> Tolds:
    """What `show -f json` prints of a capture, or of tables."""
    lines = map(json.loads, kdissect("show", path, "-f", "json").stdout.splitlines())
    return Counter(
        Told(line["client"], each["code"], each["severity"], each["path"], each["message"])
        for line in lines
        for each in line["findings"]
    )


def of_arrow(path: str) -> Tolds:
    with dissector.open(path) as capture:
        clients = {row["number"]: row["client"] for row in capture.to_arrow().to_pylist()}
        return _of_rows(capture.to_arrow("findings").to_pylist(), lambda row: clients[row["number"]])


def of_tables(folder: Path) -> Tolds:
    rows = rows_that_count(folder)
    names = ("capture", "packet", "start")
    clients = {tuple(row[name] for name in names): row["client"] for row in rows["exchanges"]}
    return _of_rows(rows["findings"], lambda row: clients[tuple(row[name] for name in names)])


def _of_rows(rows: list[dict[str, str]], client: Callable[[dict[str, str]], str]) -> Tolds:
    return Counter(Told(client(row), row["code"], row["severity"], row["path"], row["message"]) for row in rows)


def of_screen(path: str) -> Counter[str]:
    """How many the list of findings counts of each kind."""
    with Capture([path]) as capture:
        for _ in capture.read():
            pass
        model = FindingsModel(capture)
        for _ in model.analyze():
            pass
        return Counter({group.code: group.count for group in model.groups()})


def of_stats(path: str) -> Counter[str]:
    """How many exchanges `stats --by finding` counts for each kind."""
    lines = map(json.loads, kdissect("stats", path, "--by", "finding", "-f", "json").stdout.splitlines())
    return Counter({line["finding"]: line["exchanges"] for line in lines if line["finding"] is not None})


def of_rows(path: str) -> Counter[str]:
    """The same, by the rows that `show --fields` prints: each finding's code, so that one may stand there twice."""
    lines = kdissect("show", path, "--fields", "finding", "-f", "csv").stdout.decode().splitlines()[1:]
    return Counter(code for line in lines for code in {*line.strip('"').split(",")} if code)


def tables_of(path: str, folder: Path) -> Path:
    ingest_here([path], str(folder), WriteOptions())
    return folder


def assert_faces_agree(path: str, folder: Path) -> Tolds:
    """Hold all faces to what Python has; return it. `folder` is for tables."""
    told = of_python(path)
    tables = tables_of(path, folder)
    assert of_json(path) == told
    assert of_arrow(path) == told
    assert of_tables(tables) == told
    assert of_json(str(tables)) == told
    assert of_screen(path) == Counter(each.code for each in told.elements())
    assert of_stats(path) == of_rows(path) == of_stats(str(tables))
    assert of_rows(path).keys() == {each.code for each in told}
    return told


CAUSES: Final = ("mistakes", "network", "groups", "cut", "records")
"""Folders of recordings beside the others."""

"""The examples of `examples/tables`: their answers are those of the captures."""

import importlib
import json
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dissector.capture_session import Capture
from dissector.exchange.to_json import exchange_object
from dissector.tables.views import questions
from tests.pipeline.ingested import CAPTURES

EXAMPLES = Path(__file__).parents[2] / "examples" / "tables"
QUESTIONS = [question.name for question in questions()]
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    sys.path.insert(0, str(EXAMPLES))
    try:
        importlib.import_module("dashboard")
        return importlib.import_module("questions")
    finally:
        sys.path.remove(str(EXAMPLES))


def answer(example: ModuleType, folder: str, name: str) -> Rows:
    rows: Rows = example.duckdb_tables(folder)(f"SELECT * FROM {name}").to_pylist()
    return rows


def test_the_examples_ask_every_question(example: ModuleType) -> None:
    guide = (EXAMPLES / "README.md").read_text()
    assert {question.name for question in example.QUESTIONS} == set(QUESTIONS)
    assert all(f"`{name}`" in guide for name in QUESTIONS)
    for question in questions():
        [asked] = [each for each in example.QUESTIONS if each.name == question.name]
        assert asked.plot in question.sql


@pytest.mark.long
@pytest.mark.slow
def test_answers_are_those_of_the_captures(example: ModuleType, folder: str) -> None:
    requests, records = Counter[str](), Counter[str]()
    for path in CAPTURES:
        with Capture([path]) as capture:
            for _ in capture.read():
                pass
            for exchange in capture.exchanges():
                if exchange.row.kind == "exchange" and exchange.request is not None:
                    body = exchange_object(exchange)["request"]["body"]
                    requests[exchange.row.client_id or ""] += body.get("acks") != 0
                    if exchange.row.api == "Produce":
                        for topic in body["topic_data"]:
                            for partition in topic["partition_data"]:
                                batches = partition["records"]["batches"]
                                records[str(topic.get("name"))] += sum(
                                    len(batch.get("records") or ()) for batch in batches
                                )
    found = Counter[str]()
    for row in answer(example, folder, "error_budget"):
        found[row["client_id"] or ""] += row["requests"]
        assert 0 <= row["failing"] <= 1
    assert found == requests
    produced = Counter[str]()
    for row in answer(example, folder, "producers"):
        produced[row["topic"]] += row["records"]
    by_name = Counter({name: count for name, count in records.items() if name != "None"})
    assert by_name
    assert all(produced[name] == count for name, count in by_name.items())
    assert sum(produced.values()) == sum(records.values())


@pytest.mark.long
@pytest.mark.slow
def test_the_page_has_all_answers_and_escapes_what_clients_sent(example: ModuleType, folder: str) -> None:
    dashboard = sys.modules["dashboard"]
    page = dashboard.page(folder)
    assert all(question.words.replace("'", "&#x27;") in page for question in example.QUESTIONS)
    hostile = {"client_id": "<script>alert(1)</script>", "requests": 3}
    [question, *_] = [each for each in example.QUESTIONS if each.plot == "requests"]
    assert "<script>" not in "".join(dashboard.section(question, [hostile]))


@pytest.mark.long
@pytest.mark.slow
def test_the_code_of_the_notebook_runs(example: ModuleType, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="NOT TESTED with matplotlib: it is not installed")
    assert sys.modules["questions"] is example, "as in its own folder"
    monkeypatch.setenv("TABLES", folder)
    monkeypatch.setenv("MPLBACKEND", "agg")
    cells = json.loads((EXAMPLES / "platform_team.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    for each in code[:2]:
        exec(each, names)
    answers = [eval(each, names) for each in code[2:]]
    assert [any(f'answer("{name}"' in each for each in code) for name in QUESTIONS] == [True] * len(QUESTIONS)
    assert sum(bool(rows) for rows in answers) >= 8

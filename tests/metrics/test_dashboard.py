"""The dashboard for Grafana in `examples/`: it asks for metrics and labels that there are, and is whole."""

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("prometheus_client", reason="NOT TESTED with prometheus_client: it is not installed")

from tests.conftest import PCAPS
from tests.metrics.test_metrics import counted

DASHBOARD = Path(__file__).parents[2] / "examples" / "grafana" / "kdissect.json"
PANELS = json.loads(DASHBOARD.read_text())["panels"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
OF_LIVE_TRAFFIC = {"kdissect_other_labels_total"}
"""Metrics that have labels only when there were too many."""


def asked(expression: str) -> tuple[str, set[str]]:
    """The metric of an expression, and the labels that it is summed by."""
    [metric] = re.findall(r"kdissect_\w+", expression)
    return metric, {label for group in re.findall(r"by \(([\w, ]+)\)", expression) for label in group.split(", ")}


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    """The labels of each metric, of two captures with groups and errors."""
    labels: dict[str, set[str]] = {}
    for name in ("java.pcapng", "librdkafka.pcapng"):
        with counted(PCAPS / name) as (samples, _, _):
            for metric, pairs in samples:
                labels.setdefault(metric, set()).update(label for label, _ in pairs)
    return labels


@pytest.mark.long
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_names_a_metric_and_labels_that_there_are(expression: str, known: dict[str, set[str]]) -> None:
    metric, labels = asked(expression)
    if metric in OF_LIVE_TRAFFIC:
        assert labels == {"dimension"}
        return
    assert metric in known
    assert labels <= known[metric]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_closes_what_it_opens(expression: str) -> None:
    for opening, closing in ("()", "[]", "{}"):
        assert expression.count(opening) == expression.count(closing)
    assert "rate(" in expression or metric_is_gauge(expression)


def metric_is_gauge(expression: str) -> bool:
    return not expression.endswith("_total") and "(" not in expression


def test_panels_are_complete_and_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in PANELS]
    squares = {
        (x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
    }
    assert len(squares) == sum(at["w"] * at["h"] for at in places)
    assert all(x < 24 for x, _ in squares)
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    assert all(panel["title"] and panel["targets"] for panel in PANELS)

"""The recordings of the survey, client by client, and what they break of a baseline."""

import pytest

from dissector.analysis.baseline import hold, observe, read_baseline, write_baseline
from dissector.analysis.diff.side_profile import SideProfile
from dissector.analysis.outcomes import RuleOutcome, RuleStatus
from tests.analysis.diff.editing import side
from tools.lab.survey.clients import CLIENTS
from tools.lab.survey.recording_files import recording_path
from tools.lab.survey.scenarios import PLAIN

NAMES = [client.name for client in CLIENTS]
QUICK = {"franz-go", "kafkajs"}
"""Those that stand for all in `make test`; `make exhaustive` has the others. Four more are in `test_same_program`."""


def parametrized(names: list[str]) -> pytest.MarkDecorator:
    """Run a test with each client, as `QUICK` has it."""
    marked = [pytest.param(name, marks=() if name in QUICK else pytest.mark.exhaustive) for name in names]
    return pytest.mark.parametrize("client", marked)


each_client = parametrized(NAMES)


def plain(client: str, number: int = 1) -> str:
    """Return the path of a recording."""
    return str(recording_path(client, PLAIN, number))


def outcomes(text: str, path: str, fail_on: frozenset[str] = frozenset()) -> list[RuleOutcome]:
    """Hold a recording to a baseline."""
    baseline, lines = read_baseline(text)
    return hold(SideProfile(side(path), {}, {}), baseline, lines, file="orders.toml", fail_on=fail_on)


def held(text: str, path: str, fail_on: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return what a recording breaks of a baseline."""
    return {each.rule: each.message for each in outcomes(text, path, fail_on) if each.status is RuleStatus.BROKEN}


def text_of(path: str) -> str:
    """Return the baseline of a recording."""
    return write_baseline(observe(SideProfile(side(path), {}, {}))[0])

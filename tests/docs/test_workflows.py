"""What CI runs is what the Makefile has: nothing fails there alone."""

import re
from pathlib import Path

import pytest

from tests.cases import cases
from tests.test_documents import ROOT

yaml = pytest.importorskip("yaml", reason="NOT TESTED without PyYAML")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@cases("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_steps_are_targets_of_the_makefile(workflow: Path) -> None:
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    runs = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    made = [run.removeprefix("make ") for run in runs if run.startswith("make ")]
    assert made
    assert set(made) <= TARGETS
    assert all(run.startswith(("make ", "sudo apt-get ")) for run in runs)


def test_every_python_that_is_declared_is_tested() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    declared = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)
    jobs = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())["jobs"]
    assert jobs["tests"]["strategy"]["matrix"]["python"] == declared

"""The page "In CI": its workflows are whole, and their steps run here word for word, with a real client."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from xml.etree import ElementTree

import pytest

from dissector.cli.beside_command import BOOTSTRAP_VARIABLES
from tests.capture.live.loopback import needs_rights
from tests.needs import needs
from tests.probe.servers import mock_cluster
from tests.test_documents import ROOT

yaml = pytest.importorskip("yaml", reason="NOT TESTED without PyYAML")
PAGE: Final = (ROOT / "docs" / "in-ci.md").read_text(encoding="utf-8")
GITHUB, CAPTURED, GITLAB = (
    yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
)
ACTION: Final = yaml.safe_load((ROOT / "action.yml").read_text())
KDISSECT: Final = """#!/bin/sh
case "$*" in
*--check*) command=$1; shift; set -- "$command" --ignore response-trailing-bytes "$@" ;;
esac
exec "{python}" -m dissector.cli.main "$@"
"""
"""On the path of steps. The broker is librdkafka's mock cluster, which breaks this rule."""
TEST: Final = """
import os
def test_a_record_is_produced():
    import confluent_kafka
    address = os.environ["KAFKA_BOOTSTRAP_SERVERS"]  # and no requests that come only if there is time for them
    producer = confluent_kafka.Producer({"bootstrap.servers": address, "enable.metrics.push": False})
    producer.produce("orders", b"order", on_delivery=lambda error, _: failed.append(error))
    failed = []
    assert producer.flush(30) == 0
    assert failed == [None]
    assert os.environ["OUTCOME"] == "good"
"""


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_the_variables_of_the_address_are_on_the_page() -> None:
    assert all(f"`{name}`" in PAGE for name in BOOTSTRAP_VARIABLES)


def test_workflows_have_what_their_services_ask_for() -> None:
    assert GITHUB[True] == ["push", "pull_request"]  # `on`, as YAML 1.1 reads it
    for step in steps(GITHUB):
        assert len({"uses", "run"} & step.keys()) == 1
        assert step.keys() <= {"name", "uses", "run", "with", "if", "env"}
    assert any(step.get("uses", "").startswith("OWNER/kafka-dissector@") for step in steps(GITHUB))
    assert GITLAB["tests"]["artifacts"]["reports"]["junit"] == ["kdissect.xml", "tests.xml"]


def test_the_action_is_composite_and_installs_its_own_checkout() -> None:
    assert ACTION["runs"]["using"] == "composite"
    [step] = ACTION["runs"]["steps"]
    assert step["shell"] == "bash"  # which each step of a composite action has to name
    assert '"$GITHUB_ACTION_PATH' in step["run"]
    assert "${{" not in step["run"]  # an input in a script would be code
    assert not re.search(r"https?:|index-url", step["run"])
    subprocess.run(["bash", "-n", "-c", step["run"]], check=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """A repository with tests and a baseline; and the environment of a job."""
    needs("bash")
    pytest.importorskip("confluent_kafka", reason="NOT TESTED with librdkafka: it is missing")
    folder = tmp_path_factory.mktemp("repository")
    (folder / "tests").mkdir()
    (folder / "tests/test_orders.py").write_text(TEST)
    programs = folder / "programs"
    programs.mkdir()
    for name, text in (("kdissect", KDISSECT), ("python", '#!/bin/sh\nexec "{python}" "$@"\n'),
                       ("sudo", '#!/bin/sh\nexec "$@"\n')):  # fmt: skip
        (programs / name).write_text(text.replace("{python}", sys.executable))
        (programs / name).chmod(0o755)
    with mock_cluster(1) as [address]:
        environment = os.environ | {
            "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "KAFKA": address,
            "KAFKA_BOOTSTRAP_SERVERS": address, "OUTCOME": "good",
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": "",
        }  # fmt: skip
        saved = re.search(r"^kdissect proxy localhost:9092 (-w .*\nkdissect diff .*)$", PAGE, re.MULTILINE)
        assert saved is not None
        assert run(f'kdissect proxy "$KAFKA" {saved[1]}', folder, environment) == 0
        yield folder, environment


def run(step: str, folder: Path, environment: dict[str, str]) -> int:
    """As a runner runs a step: the exit code."""
    words = ["bash", "-e", "-c", step]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    print(done.stdout, done.stderr)
    return done.returncode


@pytest.mark.long
@pytest.mark.slow
def test_the_step_of_github_says_what_failed(folder: tuple[Path, dict[str, str]]) -> None:
    place, environment = folder
    [step] = [each["run"] for each in steps(GITHUB) if "kdissect " in each.get("run", "")]
    summary, baseline = place / "summary.md", place / "orders.toml"
    saved = baseline.read_text()
    baseline.write_text(re.sub(r"^(acks = ).*$", r'\1"1"', saved, flags=re.MULTILINE))
    assert run(step, place, environment) == 1
    baseline.write_text(saved)
    assert "settings.acks" in summary.read_text()
    assert (place / "kafka.pcapng").stat().st_size > 1_000
    suites = ElementTree.parse(place / "kdissect.xml").getroot()
    assert [each.get("failures") for each in suites] == ["0", "1"]
    assert ElementTree.parse(place / "tests.xml").getroot()[0].get("failures") == "0"
    [result] = json.loads((place / "kdissect.sarif").read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "orders.toml"


@pytest.mark.long
@pytest.mark.slow
def test_the_step_of_gitlab_passes_where_all_is_as_before(folder: tuple[Path, dict[str, str]]) -> None:
    place, environment = folder
    [step] = GITLAB["tests"]["script"]
    (place / "kdissect.xml").unlink(missing_ok=True)
    assert run(step, place, environment) == 0
    assert ElementTree.parse(place / "tests.xml").getroot()[0].get("failures") == "0"
    assert [each.get("failures") for each in ElementTree.parse(place / "kdissect.xml").getroot()] == ["0", "0"]
    assert " as before" in (place / "kdissect.md").read_text()


@pytest.mark.long
@pytest.mark.slow
@needs_rights
def test_the_step_that_captures_fails_with_the_tests(folder: tuple[Path, dict[str, str]]) -> None:
    saved, environment = folder
    [step] = CAPTURED
    with TemporaryDirectory() as name:
        place = Path(name)
        shutil.copytree(saved / "tests", place / "tests")
        shutil.copy(saved / "orders.toml", place)
        place.chmod(0o777)  # as root without sudo, kdissect is nobody once it captures
        files = {"OUTCOME": "bad", "GITHUB_STEP_SUMMARY": str(place / "summary.md")}
        assert run(step["run"], place, environment | files) == 1
        assert ElementTree.parse(place / "tests.xml").getroot()[0].get("failures") == "1"
        assert len(ElementTree.parse(place / "kdissect.xml").getroot()) == 2, "both were judged all the same"

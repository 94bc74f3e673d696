"""`kdissect diff --save-baseline` and `--baseline` as a user meets them: exit codes, forms, bad use."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.analysis.diff.editing import bundled
from tests.cases import cases
from tests.cli.test_commands import kdissect

pytestmark = pytest.mark.slow

JAVA, AGAIN, OTHER = (bundled(f"compare-{name}") for name in ("java-1", "java-2", "librdkafka-1"))


@pytest.fixture
def saved(tmp_path: Path) -> str:
    path = tmp_path / "orders.toml"
    done = kdissect("diff", JAVA, "--save-baseline", str(path))
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.decode() == f"Wrote {path}: 39 checks for apache-kafka-java 4.3.1\n"
    return str(path)


def test_what_is_said_of_a_baseline_can_not_move_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "\x1b]0;title\x07.toml"
    done = kdissect("diff", JAVA, "--save-baseline", str(path))
    assert done.stderr.decode().startswith(f"Wrote {tmp_path}/␛]0;title␇.toml: 39 checks")


@pytest.mark.long
def test_the_same_is_0_and_a_change_is_1(saved: str) -> None:
    same, other = (kdissect("diff", path, "--baseline", saved) for path in (AGAIN, OTHER))
    assert (same.returncode, same.stderr) == (0, b"")
    assert same.stdout == b"compare-java-2 compared with orders.toml: 39 as before\n"
    assert (other.returncode, other.stderr) == (1, b"")
    assert "  versions.Fetch: v18 → v16\n      exchange 25\n" in other.stdout.decode()
    allowed = kdissect("diff", OTHER, "--baseline", saved, "--fail-on", "acks,retries")
    assert allowed.returncode == 0
    assert b"17 different but allowed" in allowed.stdout


@pytest.mark.long
def test_other_programs_read_it(saved: str) -> None:
    done = {form: kdissect("diff", OTHER, "--baseline", saved, "-f", form) for form in ("json", "junit", "sarif")}
    assert {each.returncode for each in done.values()} == {1}
    outcomes = json.loads(done["json"].stdout)["outcomes"]
    assert {"rule": "settings.idempotence", "status": "broken", "message": "yes → no"}.items() <= next(
        each for each in outcomes if each["rule"] == "settings.idempotence"
    ).items()
    [suite] = ElementTree.fromstring(done["junit"].stdout)
    broken = sum(each["status"] == "broken" for each in outcomes)
    assert suite.get("failures") == str(broken)
    levels = [each["level"] for each in json.loads(done["sarif"].stdout)["runs"][0]["results"]]
    assert (levels.count("note"), len(levels)) == (1, broken + 1)  # another software, which does not count
    markdown = kdissect("diff", OTHER, "--baseline", saved, "-f", "markdown").stdout
    assert markdown.startswith(b"\n# compare-librdkafka-1 compared with orders.toml: ")


def test_rows_of_one_client_can_be_chosen(saved: str) -> None:
    done = kdissect("diff", AGAIN, "--baseline", saved, "--a", "api == Produce", "--ignore", "version")
    assert done.returncode == 0
    assert b"not seen" in done.stdout


@pytest.mark.long
@cases(
    ("words", "message"),
    [
        ((JAVA, AGAIN, "--baseline", "x.toml"), "a baseline describes one capture, not 2"),
        ((JAVA, "--baseline", "missing.toml"), "can't read missing.toml: no such file or directory"),
        ((JAVA, "--baseline", "x", "--save-baseline", "y"), "use --save-baseline or --baseline, not both"),
        ((JAVA, "--fail-on", "acks"), "--fail-on and --ignore need --baseline"),
        ((JAVA, JAVA, "--fail-on", "acks"), "--fail-on and --ignore need --baseline"),
        ((JAVA, "--baseline", "x", "--fail-on", "colour"), "--fail-on: 'colour' is not a line of a baseline"),
        ((JAVA, "--baseline", "x", "--b", "api"), "--b needs two sides"),
        (
            (JAVA, "--save-baseline", "/no/such/folder/x"),
            "/no/such/folder/x: there is no folder /no/such/folder",
        ),
        ((JAVA, AGAIN, "-f", "sarif"), "--format sarif is a report on a baseline: it needs --baseline"),
        ((JAVA, "--baseline", JAVA), f"{JAVA} is not a baseline: it is not text"),
    ],
)
def test_bad_use_is_one_line(words: tuple[str, ...], message: str) -> None:
    done = kdissect("diff", *words)
    assert done.returncode == 2
    [line] = done.stderr.decode().splitlines()
    assert line.startswith(f"kdissect: {message}")

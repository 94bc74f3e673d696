"""`kdissect check` as a user meets it: exit codes, forms, bad use."""

import json
from xml.etree import ElementTree

import pytest

from dissector.analysis.conformance import RULES
from tests.analysis.diff.editing import bundled
from tests.cases import cases
from tests.cli.test_commands import kdissect

pytestmark = pytest.mark.slow

CLEAN, BROKEN = bundled("java"), bundled("librdkafka")


@pytest.mark.long
def test_rules_kept_are_0_and_a_broken_one_is_1() -> None:
    clean, broken = kdissect("check", CLEAN), kdissect("check", BROKEN)
    assert (clean.returncode, clean.stderr) == (0, b"")
    assert clean.stdout.startswith(b"60 exchanges in 1 file: 0 rules broken, ")
    assert (broken.returncode, broken.stderr) == (1, b"")
    text = " ".join(broken.stdout.decode().split())
    assert "request-trailing-bytes: a request has no bytes after its last field (2 of " in text
    assert "exchange 60, request (rest), bytes 26 to 28: 3 bytes that Metadata v13 does not have" in text
    assert kdissect("check", BROKEN, "--ignore", "request-trailing-bytes").returncode == 0


@pytest.mark.long
def test_several_captures_have_a_table_of_rules_by_client() -> None:
    done = kdissect("check", CLEAN, BROKEN, bundled("sarama-1.0.0"), "-f", "markdown")
    text = done.stdout.decode()
    assert "## Broken rules by client" in text
    [row] = [line for line in text.splitlines() if line.startswith("| version-not-offered")]
    assert "kept" in row
    assert "broken 8 of 49" in row


@pytest.mark.long
def test_other_programs_read_it() -> None:
    done = {form: kdissect("check", BROKEN, "-f", form) for form in ("json", "junit", "sarif")}
    assert {each.returncode for each in done.values()} == {1}
    outcomes = json.loads(done["json"].stdout)["outcomes"]
    [broken] = [each for each in outcomes if each["status"] == "broken"]
    assert (broken["exchange"], broken["file"]) == (60, BROKEN)
    assert {each["rule"].rpartition(".")[2] for each in outcomes} == {each.code for each in RULES}
    [suite] = ElementTree.fromstring(done["junit"].stdout)
    assert suite.get("failures") == "1"
    [result] = json.loads(done["sarif"].stdout)["runs"][0]["results"]
    assert result["ruleId"].endswith("request-trailing-bytes")


def test_rules_are_listed_with_their_sources() -> None:
    done = kdissect("check", "--rules")
    assert done.returncode == 0
    text = done.stdout.decode()
    assert text.startswith(f"{len(RULES)} rules\n")
    assert all(f"  {each.code}: " in text for each in RULES)


@cases(
    ("words", "message"),
    [
        ((), "name one or more captures, or --rules"),
        ((CLEAN, "--ignore", "tidiness"), "--ignore: 'tidiness' is not a rule (kdissect check --rules lists them)"),
        (("missing.pcapng",), "missing.pcapng: no such file or directory"),
    ],
)
def test_bad_use_is_one_line(words: tuple[str, ...], message: str) -> None:
    done = kdissect("check", *words)
    assert done.returncode == 2
    [line] = done.stderr.decode().splitlines()
    assert line.startswith(f"kdissect: {message}")

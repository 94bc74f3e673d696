"""A shell gets values, too: names of APIs, row fields, findings; of files it knows more itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dissector.cli import completing
from tests.conftest import some_of

KDISSECT = Path(sys.executable).parent / "kdissect"


def offered(shell: str, *words: str) -> str:
    """What a shell is told for the last word."""
    line = " ".join(["kdissect", *words])
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words)), "_TYPER_COMPLETE_ARGS": line}
    asked |= {"_KDISSECT_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    return subprocess.run([KDISSECT], env=os.environ | asked, capture_output=True, text=True, check=False).stdout


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("shell", some_of(["bash", "zsh", "fish"], "bash"))
def test_each_shell_gets_the_names_of_apis(shell: str) -> None:
    printed = offered(shell, "explain", "Metad")
    assert "Metadata" in printed
    assert "Produce" not in printed


def test_fields_are_completed_behind_the_last_comma() -> None:
    words = "how long the client waits, from the first byte of the request to the last of the response: 50ms, 1.5s"
    assert ("api,latency", words) in completing.row_fields("api,late")
    assert completing.row_fields("api,nothing") == []


def test_findings_errors_and_pages_are_explained() -> None:
    values = [value for word in ("rebalance", "not_coord", "record") for value, _ in completing.explained(word)]
    assert {"rebalance-loop", "NOT_COORDINATOR", "records"} <= set(values)


def test_a_response_gets_an_api_then_a_version() -> None:
    assert [value for value, _ in completing.response("meta")] == ["Metadata:"]
    assert ("Metadata:12", "") in completing.response("Metadata:1")


def test_a_filter_gets_its_first_word_and_no_word_that_a_shell_breaks() -> None:
    assert "latency" in [value for value, _ in completing.filter_word("late")]
    assert "request.acks" in [value for value, _ in completing.filter_word("request.ac")]
    assert completing.filter_word("api == Fe") == []


def test_rules_and_interfaces() -> None:
    assert [value for value, _ in completing.rules("topic-name,throttle")] == ["topic-name,throttle-time"]
    assert "any" in [value for value, _ in completing.interface("a")]

"""Every command in the documents runs and prints what stands there; what can't run here is at least no mistake."""

import doctest
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from dissector.cli.every_command import app
from tests.cases import cases
from tests.conftest import some_of
from tools.docs.console import DOCUMENTS, run, shown, with_samples

_SHELL = re.compile(r"^```sh\n(.*?)^```$|^((?:    [^\n]*\n)+)", re.DOTALL | re.MULTILINE)
_PYTHON = re.compile(r"^```pycon\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_END = re.compile(r"[|&;<>]+")
WITH_OUTPUT = [path for path in DOCUMENTS if "```console" in path.read_text()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("documents")
    with_samples(made)
    return made


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "document",
    some_of(WITH_OUTPUT, "first-capture", "rebalance", "tls", "formats", "two-clients"),
    ids=lambda path: path.stem,
)
def test_commands_print_what_stands_behind_them(document: Path, folder: Path) -> None:
    for each in shown(document.read_text(encoding="utf-8")):
        assert run(each.command, folder) == each.output, f"{each.command}: to write outputs again: make docs-outputs"


@pytest.mark.long
@pytest.mark.slow
@cases("document", DOCUMENTS, ids=lambda path: path.stem)
def test_commands_without_output_have_options_that_exist(document: Path) -> None:
    for block in _SHELL.findall(document.read_text(encoding="utf-8")):
        for line in "".join(block).replace("\\\n", " ").splitlines():
            for words in calls(line):
                parsed(words)


def calls(line: str) -> Iterator[list[str]]:
    """The arguments of each call of kdissect in a line of a shell."""
    if "kdissect " not in line or line.lstrip().startswith("$"):
        return
    split = shlex.shlex(line, posix=True, punctuation_chars=True)
    split.whitespace_split = True
    words: list[str] | None = None
    for word in [*split, ";"]:
        if _END.fullmatch(word):
            if words is not None:
                yield words
            words = None
        elif words is not None:
            words.append(word)
        elif word == "kdissect":
            words = []


def parsed(words: list[str]) -> Any:
    """The command that words name, with its options. Raises `UsageError` of click's."""
    command = get_command(app)
    context = command.make_context("kdissect", words)
    while hasattr(command, "resolve_command"):
        rest = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
    return context


@pytest.mark.parametrize(
    "document", [path for path in DOCUMENTS if "```pycon" in path.read_text()], ids=lambda p: p.stem
)
def test_python_prints_what_stands_behind_it(document: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    text = "\n".join(_PYTHON.findall(document.read_text(encoding="utf-8")))
    test = doctest.DocTestParser().get_doctest(text, {}, document.stem, str(document), 0)
    failures = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(test)
    assert failures.attempted
    assert not failures.failed

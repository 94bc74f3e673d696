"""The Python in the documents is what strict type checkers accept, and names only what there is.

Documents say in words what they leave out of a block: `produce`, which is the reader's own, and the import of
`dissector` where an earlier block has it.
"""

import ast
import doctest
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import dissector
from tools.docs.console import DOCUMENTS, ROOT

_BLOCK: Final = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_GIVEN: Final = "import dissector\n\n\ndef produce(bootstrap: str = '') -> None: ...\n\n\n"
_FOR_STRANGERS: Final = ("spark",)
"""Documents whose blocks are for the shells of other programs, which have names of their own."""
_CONFIGURATION: Final = """
[mypy]
strict = true
follow_imports = silent
[mypy-dpkt.*,pandas.*]
ignore_missing_imports = true
"""


class Program(NamedTuple):
    """A block of a document, or all that its sessions type."""

    name: str
    text: str


def programs() -> Iterator[Program]:
    for document in DOCUMENTS:
        if document.stem in _FOR_STRANGERS:
            continue
        stem = document.stem.replace("-", "_").lower()
        blocks = _BLOCK.findall(document.read_text(encoding="utf-8"))
        for number, text in enumerate((text for kind, text in blocks if kind == "python"), 1):
            yield Program(f"{stem}_{number}", text)
        if session := "".join(doctest.script_from_examples(text) for kind, text in blocks if kind == "pycon"):
            yield Program(f"{stem}_session", session)


PROGRAMS: Final = [*programs()]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.name)
def test_names_and_arguments_exist(program: Program) -> None:
    for node in ast.walk(ast.parse(program.text)):
        if isinstance(node, ast.ImportFrom) and node.module == "dissector":
            assert {each.name for each in node.names} <= {*dissector.__all__}
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "dissector":
            assert node.attr in dissector.__all__
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            _bind(node, node.func)


def _bind(call: ast.Call, function: ast.Attribute) -> None:
    """Raise `TypeError` if a function of the package can't be called so."""
    if isinstance(function.value, ast.Name) and function.value.id == "dissector":
        given = (None for _ in call.args), {each.arg: None for each in call.keywords if each.arg}
        inspect.signature(getattr(dissector, function.attr)).bind(*given[0], **given[1])


def test_the_check_of_names_sees_what_is_wrong() -> None:
    for text, kind in (("dissector.opne", AssertionError), ("dissector.open('a', prts=[1])", TypeError),
                       ("from dissector import Captur", AssertionError)):  # fmt: skip
        with pytest.raises(kind):
            test_names_and_arguments_exist(Program("wrong", text))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_blocks_pass_mypy_strict(tmp_path: Path) -> None:
    """One run over all of them, and over one that must not pass: 15 seconds of CPU for the source of the package."""
    pytest.importorskip("mypy", reason="NOT TESTED with mypy: it is not installed")
    for name, text in (*PROGRAMS, Program("wrong", "capture = dissector.open(1)\n")):
        (tmp_path / f"{name}.py").write_text(_GIVEN + text)
    (tmp_path / "mypy.ini").write_text(_CONFIGURATION)
    command = [
        "-m",
        "mypy",
        "--no-error-summary",
        "--cache-dir",
        str(tmp_path / "cache"),
        ".",
    ]
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, cwd=tmp_path,
        env={"MYPYPATH": str(ROOT)},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.startswith("wrong.py")] == [], done.stderr
    assert [line.partition(" error: ")[2].partition(" has ")[0] for line in lines] == ['Argument 1 to "open"']

"""What the documents name is there; what the house rules ask for is so."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases import cases

ROOT = Path(__file__).parents[1]
ROOMS = [*sorted(path.parent for path in (ROOT / "dissector").glob("*/__init__.py")), ROOT / "tui"]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/glossary.md")),
    *(room / "README.md" for room in ROOMS),
]
PATH = re.compile(r"`((?:[\w.-]+/)*[\w.-]+(?:\.(?:py|md|json|toml|txt|java|c)|/))`")
"""A file or a folder in backticks: ``transport/registry.py``, ``tests/lab/``."""
USERS = {"config.toml", "dist/", "build/site/"}
"""What is the user's, or made on demand."""
DIALECT = re.compile(r"\b(?:anew|untold|retell|Noter|Maker|Lives|Peeling|put_down|taken_up)\b")


def source() -> Iterator[Path]:
    for package in ("dissector", "tui"):
        yield from sorted((ROOT / package).rglob("*.py"))


def is_there(path: str, document: Path) -> bool:
    """From the repository, from one of its packages, or anywhere below the document."""
    bases = (ROOT, ROOT / "dissector", ROOT / "tests")
    return any((base / path).exists() for base in bases) or (
        document.parent != ROOT and any(document.parent.rglob(path.rstrip("/")))
    )


@cases("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_that_a_document_names_is_there(document: Path) -> None:
    named = set(PATH.findall(document.read_text(encoding="utf-8"))) - USERS
    assert [path for path in sorted(named) if not is_there(path, document)] == []


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_readers_learn_that_there_are_three_names(name: str) -> None:
    text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
    assert "`kafka-dissector` installs the command `kdissect`; in Python it is `import dissector`." in text


def test_no_two_classes_have_one_name() -> None:
    """But for those of the API: each has the name of what it holds."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in (path for path in source() if path.parent.name != "api"):
        for name in re.findall(r"^class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            found[name].append(str(path.relative_to(ROOT)))
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_the_source_keeps_to_the_glossary() -> None:
    found = [f"{path.relative_to(ROOT)}: {word}" for path in source() for word in DIALECT.findall(path.read_text())]
    assert found == []

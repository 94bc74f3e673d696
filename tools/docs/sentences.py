"""All text that users read, in one list, to be read once as an editor would: `python -m tools.docs.sentences [KIND…]`.

A line has where the text stands and the text. The kinds are findings, rules, errors (of Kafka), options, fields, keys,
api (docstrings), messages (what code raises and prints) and pages.

Invariant: each text is read where it is defined, so that nothing which users see has to be added here.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Final

from typer.main import get_command

import dissector
from dissector.analysis.conformance import RULES
from dissector.cli.main import app
from dissector.cli.reference import command_pages
from dissector.exchange.row_fields import row_fields
from dissector.findings.registry import CODES, explain
from dissector.protocol.schema.errors import known_errors
from tools.docs import keys

ROOT: Final = Path(__file__).parents[2]
CODE: Final = ("dissector", "tui")
_SAID_BY: Final = re.compile(
    r"Error$|^Finding$|^print_error$|^print$|^_say$|^notify$|^complain$|^_complain$|^_finding$"
)
"""What a text is given to that users then see."""
_LETTERS: Final = re.compile(r"[a-z]{2,}.*[ ]")
Sentence = tuple[str, str]


def findings() -> Iterator[Sentence]:
    for code in CODES:
        found = explain(code)
        if found is not None:
            for part in ("title", "what", "why", "what_to_do"):
                yield f"{code}.{part}", getattr(found, part)


def rules() -> Iterator[Sentence]:
    for each in RULES:
        yield each.code, each.title


def errors() -> Iterator[Sentence]:
    for each in known_errors().values():
        yield each.name, each.advice


def options() -> Iterator[Sentence]:
    for page in command_pages(get_command(app)):
        yield f"kdissect {page.name}", page.help
        for line in page.parameters:
            yield f"kdissect {page.name} {line.names}", line.help
        for words, typed in page.examples:
            yield typed, words


def fields() -> Iterator[Sentence]:
    for each in row_fields():
        yield each.name, each.description


def bindings() -> Iterator[Sentence]:
    for kind in keys.screens():
        for _, found in keys.bound(kind):
            for each in found:
                yield each.id or each.key, " | ".join(filter(None, (each.description, each.tooltip)))


def api() -> Iterator[Sentence]:
    for name in sorted({*dissector.__all__} - {"__version__"}):
        target = getattr(dissector, name)
        yield name, inspect.getdoc(target) or ""
        for member, value in sorted(vars(target).items()) if inspect.isclass(target) else ():
            if not member.startswith("_") and isinstance(value, FunctionType | property | classmethod):
                yield f"{name}.{member}", inspect.getdoc(value) or ""


def messages() -> Iterator[Sentence]:
    """What code raises and prints: values in it stand as ``{…}``."""
    for path in sorted(path for name in CODE for path in (ROOT / name).rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(call, ast.Call):
                continue
            name = getattr(call.func, "id", None) or getattr(call.func, "attr", "")
            if _SAID_BY.search(name):
                for text in filter(_LETTERS.search, map(_text, call.args)):
                    yield f"{path.relative_to(ROOT)}:{call.lineno}", text


def _text(node: ast.expr) -> str:
    """Return the text of an expression, as far as it is one."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(each) if isinstance(each, ast.Constant) else "{…}" for each in node.values)
    if isinstance(node, ast.IfExp):
        return f"{_text(node.body)} / {_text(node.orelse)}"
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return ""


def pages() -> Iterator[Sentence]:
    """Paragraphs and rows of tables, without blocks of code."""
    for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]:
        text = re.sub(r"^```.*?^```$|^(?: {4}.*\n)+", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        for block in re.split(r"\n{2,}", text):
            yield str(path.relative_to(ROOT)), block


KINDS: Final[dict[str, Callable[[], Iterator[Sentence]]]] = {
    "findings": findings, "rules": rules, "errors": errors, "options": options, "fields": fields, "keys": bindings,
    "api": api, "messages": messages, "pages": pages,
}  # fmt: skip


def main(words: list[str]) -> None:
    """Print the texts of these kinds, or of all, each once."""
    for name in words or KINDS:
        for place, text in dict.fromkeys(KINDS[name]()):
            if text.strip():
                print(f"{place}: {' '.join(text.split())}")


if __name__ == "__main__":
    main(sys.argv[1:])

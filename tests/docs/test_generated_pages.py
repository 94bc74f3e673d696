"""What the program has stands on a generated page: every finding, key, option, row field, rule, error, public name."""

import pytest
from typer.main import get_command

import dissector
from dissector.analysis.conformance import RULES
from dissector.cli.every_command import app
from dissector.cli.explain import explain
from dissector.cli.reference import command_pages
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.findings.registry import CODES
from dissector.protocol.schema.errors import known_errors
from tests.docs.test_outputs import calls, parsed
from tools.docs import command_line, errors, findings, keys, python_api, row_fields, rules


def missing(page: str, wanted: list[str]) -> list[str]:
    return [each for each in wanted if each not in page]


def test_every_finding_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "examples", dict)  # all recordings are read for them
    assert missing(findings.page(), [f"{{ #{code} }}" for code in CODES]) == []


@pytest.mark.exhaustive
@pytest.mark.slow
def test_most_findings_have_an_example() -> None:
    assert findings.page().count("**Example.**") >= len(CODES) // 2


def test_every_key_that_has_a_name_stands_there() -> None:
    named = {each.id for kind in keys.screens() for _, found in keys.bound(kind) for each in found if each.id}
    assert len(named) > 80
    shown = {
        each.id for kind in keys.screens() for _, found in keys.bound(kind) for each in found
        if each.id and (each.tooltip or each.description)
    }  # fmt: skip
    assert missing(keys.page(), [f"`{each}`" for each in sorted(shown)]) == []


def test_every_command_and_option_stands_there() -> None:
    pages = list(command_pages(get_command(app)))
    assert {"", "show", "diff", "live", "tables list", "schema import"} <= {each.name for each in pages}
    page = command_line.page().replace("\\|", "|")
    assert missing(page, [f"## kdissect {each.name}".rstrip() for each in pages]) == []
    assert missing(page, [f"`{line.names}`" for each in pages for line in each.parameters]) == []


@pytest.mark.slow
def test_every_command_has_examples_that_are_no_mistakes() -> None:
    pages = list(command_pages(get_command(app)))
    assert [each.name for each in pages if not each.examples] == []
    for _, line in (example for each in pages for example in each.examples):
        for words in calls(line):
            parsed(words)


def test_what_the_examples_explain_is_known(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    [page] = [each for each in command_pages(get_command(app)) if each.name == "explain"]
    assert len(page.examples) >= 5
    for _, line in page.examples:
        word, *version = line.split()[2:]
        assert explain(word, version[0] if version else None) == 0, line


def test_every_row_field_rule_and_error_stands_there() -> None:
    assert missing(row_fields.page(), [f"`{name}`" for name in ROW_FIELDS]) == []
    assert missing(rules.page(), [f"`{each.code}`" for each in RULES]) == []
    assert missing(errors.page(), [f"`{each.name}`" for each in known_errors().values()]) == []


def test_every_public_name_stands_there() -> None:
    names = set(dissector.__all__) - {"__version__"}  # which has no docstring
    assert missing(python_api.page(), [f"heading: {name}\n" for name in names]) == []

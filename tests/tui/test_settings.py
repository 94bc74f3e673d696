"""The configuration: its values, its errors, and that a change damages nothing else."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from tui.appearance import PaneLayout
from tui.list_columns import ListColumns
from tui.row_colors import ColorBy
from tui.settings import COLORS, COLUMNS, THEME, TIME, Settings, change, load, path
from tui.time_format import TimeFormat


def written(text: str | bytes) -> None:
    path().parent.mkdir(parents=True, exist_ok=True)
    path().write_bytes(text if isinstance(text, bytes) else text.encode())


def test_it_has_the_choices_of_the_user() -> None:
    assert load() == Settings()
    written(
        'theme = "nord"\ncolors = "api"\ntime = "utc"\nlayout = "columns"\n'
        'columns = ["No.", "API=20"]\n[keys]\n"main.flip" = "R"\n'
    )
    columns = ListColumns.of(["No.", "API=20"])
    assert load() == Settings("nord", ColorBy.API, TimeFormat.UTC, PaneLayout.COLUMNS, columns, {"main.flip": "R"})


@cases(
    ("text", "words"),
    [
        ("theme = 3", "theme must be a name"),
        ('colors = "red"', "colors must be one of severity"),
        ("time = [1]", "time must be one of start"),
        ('layout = "three"', "layout must be one of rows, columns"),
        ('columns = ["Nope"]', "unknown column 'Nope'"),
        ("columns = 3", "columns must be a list"),
        ("[keys]\na = 3", "keys must be names"),
        ('keys = "x"', "keys must be names"),
        ("nothing = 1", "unknown setting 'nothing'"),
        ("theme = ", "config.toml: "),
        (b"\xff\xfe", "config.toml: "),
        (b"x" * 2_000_000, "larger than"),
        ("a = " + "[" * 5000, "config.toml: "),
        ('"a\\u001b[31m" = 1', "unknown setting 'a"),
    ],
)
def test_an_invalid_value_is_reported_in_one_line_and_the_others_apply(text: str | bytes, words: str) -> None:
    valid = b'theme = "nord"\n' if isinstance(text, str) and not text.startswith(("theme", "a =")) else b""
    written(valid + (text if isinstance(text, bytes) else text.encode()))
    settings = load()
    assert settings.problem is not None
    assert words in settings.problem
    assert "\n" not in settings.problem
    assert "\x1b" not in settings.problem
    assert settings.theme == ("nord" if valid else None)


def test_a_change_keeps_comments_tables_and_everything_else() -> None:
    text = '# mine\n theme = "nord" # for the night\n\n[keys]\n# this too\n"main.flip" = "R"\n'
    written(text)
    change(COLORS, "latency")
    change(THEME, "kdissect-light")
    change(TIME, "utc")
    change(TIME, None)
    changed = path().read_text()
    for kept in ("# mine\n", "# this too\n", '"main.flip" = "R"\n'):
        assert kept in changed
    assert tomllib.loads(changed) == {"theme": "kdissect-light", "colors": "latency", "keys": {"main.flip": "R"}}


def test_a_change_that_would_break_the_file_is_not_made() -> None:
    for text in ('columns = [\n  "No.",\n]\n', "theme = \n", '"columns" = ["No."]\n'):
        written(text)
        with pytest.raises(ValueError, match=r"."):
            change(COLUMNS, ["API"])
        assert path().read_text() == text


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("")
    path().parent.mkdir(parents=True)
    path().symlink_to(real)
    change(THEME, "nord")
    assert path().is_symlink()
    assert tomllib.loads(real.read_text()) == {"theme": "nord"}


NAMES = st.sampled_from(["# words", "", 'theme = "x"', "other = 1", "[table]", "colors = 'api'", "a.b = 2", "  "])


@given(st.lists(NAMES), st.sampled_from([THEME, COLORS]), st.none() | st.text())
def test_after_a_change_the_file_has_it_or_is_as_it_was(lines: list[str], name: str, value: str | None) -> None:
    text = "\n".join(lines)
    written(text)
    try:
        change(name, value)
    except ValueError:
        assert path().read_text() == text
        return
    before = tomllib.loads(text)
    before.pop(name, None)
    assert tomllib.loads(path().read_text()) == before | ({} if value is None else {name: value})

"""Saved filters, profiles and coloring rules: on the screen, and in `config.toml`."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.widgets import Input

from tests.tui.main_driver import JAVA, Screen, opened
from tui import settings
from tui.row_colors import ColorBy, rule_hue
from tui.saved import Profile, Saved, with_entry
from tui.screens.dialog import Menu


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "kdissect" / "config.toml"
    path.parent.mkdir()
    path.write_text('# mine\ntheme = "kdissect"\n\n[keys]\n"main.flip" = "R"  # kept\n')
    return path


async def choose(screen: Screen, *keys: str) -> None:
    """Press keys, each in a menu or a prompt that the one before opened."""
    for key in keys:
        before = screen.pilot.app.screen
        await screen.pilot.press(key)
        await screen.until(lambda before=before: screen.pilot.app.screen is not before)


async def name(screen: Screen, words: str) -> None:
    """Give a name in a prompt."""
    screen.pilot.app.screen.query_one(Input).value = words
    await choose(screen, "enter")
    await screen.settle()


@pytest.mark.long
async def test_a_filter_is_saved_applied_by_its_key_and_deleted(config: Path) -> None:
    async with opened(JAVA) as screen:
        screen.main.filter.apply("api == Fetch")
        await screen.settle()
        await choose(screen, "B", "s")
        await screen.until(lambda: screen.pilot.app.screen.query(Input))
        await name(screen, 'my "fetches"')
        assert settings.load().saved.filters == {'my "fetches"': "api == Fetch"}
        assert config.read_text().startswith("# mine\n")
        screen.main.filter.apply("")
        await choose(screen, "B", "1")
        await screen.settle()
        assert screen.main.view.is_filtered
        await choose(screen, "B", "d")
        await screen.until(lambda: isinstance(screen.pilot.app.screen, Menu))
        await choose(screen, "enter")
        await screen.settle()
        assert settings.load().saved.filters == {}
    assert "kept" in config.read_text()


@pytest.mark.exhaustive
async def test_a_profile_brings_filter_columns_and_colors_together() -> None:
    async with opened(JAVA) as screen:
        screen.main.filter.apply("api == Produce")
        screen.main.list_appearance.toggle_column("Corr")
        await screen.press("v")
        shown, colors = [column.name for column in screen.list.columns()], screen.main.appearance.color_by
        await choose(screen, "P", "s")
        await screen.until(lambda: screen.pilot.app.screen.query(Input))
        await name(screen, "producers")
        screen.main.filter.apply("")
        screen.main.list_appearance.toggle_column("Corr")
        await screen.press("v")
        await choose(screen, "P", "1")
        await screen.settle()
        assert [column.name for column in screen.list.columns()] == shown
        assert screen.main.appearance.color_by is colors
        assert screen.main.filter._run.filter.text == "api == Produce"
    [profile] = settings.load().saved.profiles.values()
    assert (profile.filter, profile.colors) == ("api == Produce", colors)


@pytest.mark.long
async def test_a_rule_colors_the_rows_that_match() -> None:
    async with opened(JAVA) as screen:
        screen.main.filter.apply("api == Metadata")
        await screen.settle()
        await choose(screen, "B", "k")
        await screen.until(lambda: isinstance(screen.pilot.app.screen, Menu))
        await choose(screen, "3")
        await screen.settle()
        rules = screen.main.appearance.saved.color_rules
        assert rules == settings.load().saved.color_rules == {"api == Metadata": 3}
        exchanges = list(screen.main.capture.exchanges())
        hues = [rule_hue(rules, exchange, screen.main.capture.start_ns) for exchange in exchanges]
        assert hues == [2 if exchange.fields.api == "Metadata" else None for exchange in exchanges]


def test_a_rule_that_is_no_filter_colors_nothing() -> None:
    assert rule_hue({"api ==": 1}, None, 0) is None


names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
values = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)


@given(
    st.lists(st.tuples(st.sampled_from(["filters", "color_rules", "profiles"]), names, values | st.none()), max_size=6)
)
def test_entries_are_kept_and_nothing_else_changes(changes: list[tuple[str, str, str | None]]) -> None:
    text = 'theme = "x"  # mine\n\n[keys]\n"main.flip" = "R"\n'
    expected: dict[str, dict[str, object]] = {}
    for table, entry, value in changes:
        kept = None if value is None else 3 if table == "color_rules" else value
        if table == "profiles" and value is not None:
            kept = Profile(value, ("No.",), ColorBy.API).values()
        text = with_entry(text, table, entry, kept)
        expected.setdefault(table, {})
        expected[table].pop(entry, None)
        if kept is not None:
            expected[table][entry] = kept
    found = tomllib.loads(text)
    assert (found.pop("theme"), found.pop("keys")) == ("x", {"main.flip": "R"})
    assert {table: entries for table, entries in found.items() if entries} == {
        table: entries for table, entries in expected.items() if entries
    }
    assert "# mine" in text


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("filters = 3", "filters must be names"), ('[filters]\na = ""', "filters must be names"),
        ('[profiles]\na = "x"', "profiles must be tables"), ("[profiles.a]\ncolours = 1", "unknown setting 'colours'"),
        ('[profiles.a]\ncolumns = ["nope"]', "unknown column 'nope'"), ("[color_rules]\nerror = 99", "a hue from 1 to"),
    ],
)  # fmt: skip
def test_what_is_invalid_is_one_plain_line(config: Path, line: str, words: str) -> None:
    config.write_text(line)
    problem = settings.load().problem
    assert problem is not None
    assert words in problem


def test_what_is_saved_stays_in_order() -> None:
    saved = Saved()
    saved.take_filters({"b": "1", "a": "2"})
    assert [*saved.filters] == ["b", "a"]

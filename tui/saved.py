"""What the user saved under a name, in the tables of `config.toml`: filters, profiles, coloring rules.

    [filters]
    "slow fetches" = "api == Fetch && latency > 1s"

    [profiles."producers"]
    filter = "api == Produce"
    columns = ["No.", "Time", "Latency"]
    colors = "latency"

    [color_rules]
    "response.throttle_time_ms > 0" = 3

A rule colors the rows that match its filter in a hue, from 1; the first rule that matches a row counts.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tui.list_columns import ListColumns
from tui.row_colors import HUES, ColorBy

FILTERS, PROFILES, COLOR_RULES = "filters", "profiles", "color_rules"
KEYS: Final = "123456789abcdefghilmnoprtuvwxyz"
"""Keys of saved things, in their order; not those of the menus' own choices."""
_HEADER: Final = re.compile(r"\s*\[")
Setting = str | int | list[str]


@dataclass(frozen=True)
class Profile:
    """A filter, columns and colors together; empty and None are the defaults."""

    filter: str = ""
    columns: tuple[str, ...] | None = None
    colors: ColorBy = ColorBy.SEVERITY

    def values(self) -> dict[str, Setting]:
        """The settings of its table."""
        columns: dict[str, Setting] = {} if self.columns is None else {"columns": list(self.columns)}
        return {"filter": self.filter, "colors": self.colors.value} | columns


@dataclass
class Saved:
    """All that is saved, by name, in the order of the file."""

    filters: dict[str, str] = field(default_factory=dict)
    profiles: dict[str, Profile] = field(default_factory=dict)
    color_rules: dict[str, int] = field(default_factory=dict)
    """Hues, from 1, by filter."""

    def take_filters(self, value: object) -> None:
        """Take the table of filters. Raises `ValueError` with a plain line."""
        if not isinstance(value, dict) or not all(isinstance(each, str) and each for each in value.values()):
            raise ValueError('filters must be names with a filter in quotes, such as slow = "latency > 1s"')
        self.filters = value

    def take_profiles(self, value: object) -> None:
        """Take the tables of profiles. Raises `ValueError` with a plain line."""
        if not isinstance(value, dict) or not all(isinstance(each, dict) for each in value.values()):
            raise ValueError("profiles must be tables, such as [profiles.producers]")
        self.profiles = {name: _profile(name, each) for name, each in value.items()}

    def take_color_rules(self, value: object) -> None:
        """Take the table of coloring rules. Raises `ValueError` with a plain line."""
        if not isinstance(value, dict) or not all(_is_hue(each) for each in value.values()):
            raise ValueError(f'color_rules must be filters with a hue from 1 to {HUES}, such as "latency > 1s" = 3')
        self.color_rules = value


def _profile(name: str, values: Mapping[str, object]) -> Profile:
    known = {"filter", "columns", "colors"}
    if unknown := set(values) - known:
        raise ValueError(f"profiles.{name}: unknown setting {min(unknown)!r}; settings are {', '.join(sorted(known))}")
    text, columns, colors = (
        values.get("filter", ""),
        values.get("columns"),
        values.get("colors", ColorBy.SEVERITY.value),
    )
    if not isinstance(text, str):
        raise ValueError(f"profiles.{name}: filter must be text in quotes")
    if colors not in [way.value for way in ColorBy]:
        raise ValueError(f"profiles.{name}: colors must be one of {', '.join(way.value for way in ColorBy)}")
    if columns is not None:
        if not isinstance(columns, list) or not all(isinstance(each, str) for each in columns):
            raise ValueError(f"profiles.{name}: columns must be a list of names in quotes")
        ListColumns.of(columns)
    return Profile(text, None if columns is None else tuple(columns), ColorBy(colors))


def _is_hue(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= HUES


def with_entry(text: str, table: str, name: str, value: Setting | Mapping[str, Setting] | None) -> str:
    """Return the text of the file with an entry of a table, or without it: None. A mapping is a table of its own.

    Raises `ValueError` if the file can't be changed without damage to the rest of it."""
    wanted = tomllib.loads(text)
    entries = {key: each for key, each in wanted.get(table, {}).items() if key != name}
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    key = json.dumps(name, ensure_ascii=False)
    if isinstance(value, Mapping) or (value is None and isinstance(wanted.get(table, {}).get(name), dict)):
        _replace_table(lines, f"[{table}.{key}]", name, table, value)
    else:
        _replace_line(lines, table, name, None if value is None else f"{key} = {_toml(value)}\n")
    if value is not None:
        entries[name] = dict(value) if isinstance(value, Mapping) else value
    wanted[table] = entries
    new = "".join(lines)
    try:
        found = tomllib.loads(new)
    except ValueError:
        found = {}
    if found | {table: found.get(table, {})} != wanted:
        raise ValueError(f"can't change {table} without damage to the rest: edit the file by hand")
    return new


def _toml(value: Setting) -> str:
    return json.dumps(value, ensure_ascii=False)


def _table_range(lines: list[str], names: set[str]) -> range | None:
    """The lines of a table, its header included."""
    first = next((n for n, line in enumerate(lines) if line.strip() in names), None)
    if first is None:
        return None
    after = next((n for n in range(first + 1, len(lines)) if _HEADER.match(lines[n])), len(lines))
    return range(first, after)


def _replace_line(lines: list[str], table: str, name: str, line: str | None) -> None:
    there = _table_range(lines, {f"[{table}]"})
    if there is None:
        if line is not None:
            lines += (["\n"] if lines else []) + [f"[{table}]\n", line]
        return
    for n in there[1:]:
        try:
            entry = tomllib.loads(lines[n])
        except ValueError:
            continue
        if name in entry:
            lines[n : n + 1] = [] if line is None else [line]
            return
    if line is not None:
        end = next((n + 1 for n in reversed(there) if lines[n].strip()), there.stop)
        lines.insert(end, line)


def _replace_table(lines: list[str], header: str, name: str, table: str, values: Mapping[str, Setting] | None) -> None:
    there = _table_range(lines, {header, f"[{table}.{name}]"})
    new = [] if values is None else [f"{header}\n", *(f"{key} = {_toml(each)}\n" for key, each in values.items()), "\n"]
    if there is not None:
        lines[there.start : there.stop] = new
    elif new:
        lines += (["\n"] if lines else []) + new

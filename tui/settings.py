"""The configuration, `config.toml` in the configuration folder: read at start, changed by the user's choices on the
screen.

    theme = "kdissect-light"
    colors = "latency"
    time = "utc"
    layout = "columns"
    columns = ["No.", "Time", "API=20", "Latency", "request.topics.name=30"]

    [keys]
    "main.flip" = "R"

and what is saved under a name (`saved.py`).

Invariants:
  * an invalid value is reported in one plain line, and ignored;
  * a change edits one line of the file: comments, and everything else, stay.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dissector.core.text import clean
from tui.appearance import PaneLayout
from tui.folders import config_folder, write_file
from tui.list_columns import ListColumns
from tui.row_colors import ColorBy
from tui.saved import COLOR_RULES, FILTERS, PROFILES, Saved, Setting, with_entry
from tui.time_format import TimeFormat

THEME, COLORS, TIME, COLUMNS, LAYOUT, KEYS = "theme", "colors", "time", "columns", "layout", "keys"
_TABLE: Final = re.compile(r"\s*\[")
_LARGEST: Final = 1 << 20
"""Bytes of the largest file that is read."""


@dataclass
class Settings:
    """The user's choices, and the defaults for everything else."""

    theme: str | None = None
    colors: ColorBy = ColorBy.SEVERITY
    time: TimeFormat = TimeFormat.START
    layout: PaneLayout = PaneLayout.ROWS
    columns: ListColumns = field(default_factory=ListColumns)
    keys: dict[str, str] = field(default_factory=dict)
    """Keys by binding id; more than one are separated by commas."""
    saved: Saved = field(default_factory=Saved)
    """Filters, profiles and coloring rules."""
    problem: str | None = None
    """The first problem with the file."""

    def __post_init__(self) -> None:
        self._takers: dict[str, Callable[[object], None]] = {
            THEME: self._take_theme,
            COLORS: self._take_colors,
            TIME: self._take_time,
            COLUMNS: self._take_columns,
            LAYOUT: self._take_layout,
            KEYS: self._take_keys,
            FILTERS: self.saved.take_filters,
            PROFILES: self.saved.take_profiles,
            COLOR_RULES: self.saved.take_color_rules,
        }

    def take(self, name: str, value: object) -> None:
        """Take a value of the file. Raises `ValueError` with a plain line if it is invalid."""
        if name not in self._takers:
            raise ValueError(f"unknown setting {name!r}; settings are {', '.join(self._takers)}")
        self._takers[name](value)

    def _take_theme(self, value: object) -> None:
        if not isinstance(value, str):
            raise ValueError("theme must be a name in quotes")
        self.theme = value

    def _take_colors(self, value: object) -> None:
        ways = [way.value for way in ColorBy]
        if value not in ways:
            raise ValueError(f"colors must be one of {', '.join(ways)}, not {value!r}")
        self.colors = ColorBy(value)

    def _take_time(self, value: object) -> None:
        forms = [form.value for form in TimeFormat]
        if value not in forms:
            raise ValueError(f"time must be one of {', '.join(forms)}, not {value!r}")
        self.time = TimeFormat(value)

    def _take_layout(self, value: object) -> None:
        layouts = [layout.value for layout in PaneLayout]
        if value not in layouts:
            raise ValueError(f"layout must be one of {', '.join(layouts)}, not {value!r}")
        self.layout = PaneLayout(value)

    def _take_columns(self, value: object) -> None:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise ValueError('columns must be a list of names in quotes, such as ["No.", "API=20"]')
        self.columns = ListColumns.of(value)

    def _take_keys(self, value: object) -> None:
        if not isinstance(value, dict) or not all(isinstance(each, str) and each for each in value.values()):
            raise ValueError('keys must be names with a key in quotes, such as "main.flip" = "R"')
        self.keys = value


def path() -> Path:
    """Return the path of the file. Raises `OSError` for a user without a home."""
    return config_folder() / "config.toml"


def load() -> Settings:
    """Return the settings of the file."""
    settings = Settings()
    try:
        values = tomllib.loads(_text())
    except (FileNotFoundError, NotADirectoryError):
        return settings
    except (OSError, ValueError, RecursionError) as error:
        settings.problem = _error_line(error)
        return settings
    for name, value in values.items():
        try:
            settings.take(name, value)
        except ValueError as error:
            settings.problem = settings.problem or _error_line(error)
    return settings


def change(name: str, value: str | list[str] | None) -> None:
    """Write a setting to the file, or remove it with None. Raises `OSError`, and `ValueError` with a plain line if the
    file can't be changed without damage to the rest of it."""
    try:
        text = _text()
    except (FileNotFoundError, NotADirectoryError):
        text = ""
    wanted = {key: each for key, each in tomllib.loads(text).items() if key != name}
    lines = text.splitlines(keepends=True)
    tables = next((n for n, line in enumerate(lines) if _TABLE.match(line)), len(lines))
    ours = re.compile(rf"\s*{name}\s*=")
    at = next((n for n, line in enumerate(lines[:tables]) if ours.match(line)), None)
    line = []
    if value is not None:
        wanted[name] = value
        line = [f"{name} = {json.dumps(value)}\n"]
    if at is not None:
        lines[at : at + 1] = line
    elif line:
        before = lines[tables - 1 : tables]
        lines[tables:tables] = line if not before or before[0].endswith("\n") else ["\n", *line]
    new = "".join(lines)
    try:
        same = tomllib.loads(new) == wanted
    except ValueError:
        same = False
    if not same:
        raise ValueError(f"can't change {name} without damage to the rest: put it on one line, before all tables")
    if new != text:
        write_file(path().resolve(), new.encode())


def change_entry(table: str, name: str, value: Setting | Mapping[str, Setting] | None) -> None:
    """Write an entry of a table of the file, or remove it with None. Raises `OSError`, and `ValueError` as `change`."""
    try:
        text = _text()
    except (FileNotFoundError, NotADirectoryError):
        text = ""
    write_file(path().resolve(), with_entry(text, table, name, value).encode())


def _text() -> str:
    with path().open("rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(f"larger than {_LARGEST:,} bytes")
    return data.decode()


def _error_line(error: Exception) -> str:
    words = (error.strerror if isinstance(error, OSError) else None) or str(error) or "nested too deeply"
    return clean(f"config.toml: {words}")

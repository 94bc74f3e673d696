"""The configuration: `config.toml` in the configuration's folder, read when the screen opens, changed by what the user
chooses there.

    theme = "kdissect-light"
    colours = "latency"
    time = "utc"
    columns = ["No.", "Time", "API=20", "Latency", "request.topics.name=30"]

    [keys]
    "main.flip" = "R"

Invariants:
  * what makes no sense is told in one plain line, and counts as not there;
  * a change touches one line of the file: comments, and what else the user wrote, stay.
"""

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dissector.core.text import clean
from tui.folders import config_folder, write_whole
from tui.list_columns import ListColumns
from tui.row_colors import ColorBy
from tui.time_format import TimeFormat

THEME, COLOURS, TIME, COLUMNS, KEYS = "theme", "colours", "time", "columns", "keys"
_TABLE: Final = re.compile(r"\s*\[")
_LARGEST: Final = 1 << 20
"""Bytes of a file that is read."""


@dataclass
class Settings:
    """What the user chose, with what is usual where they did not."""

    theme: str | None = None
    colours: ColorBy = ColorBy.SEVERITY
    time: TimeFormat = TimeFormat.START
    columns: ListColumns = field(default_factory=ListColumns)
    keys: dict[str, str] = field(default_factory=dict)
    """Keys, several with commas between, by the id of what they do."""
    problem: str | None = None
    """The first thing that makes no sense."""

    def __post_init__(self) -> None:
        self._takers: dict[str, Callable[[object], None]] = {
            THEME: self._take_theme,
            COLOURS: self._take_colours,
            TIME: self._take_time,
            COLUMNS: self._take_columns,
            KEYS: self._take_keys,
        }

    def take(self, name: str, value: object) -> None:
        """Take a value of the file. Raises `ValueError` with a plain line for what makes no sense."""
        if name not in self._takers:
            raise ValueError(f"there is no setting {name!r}; there are {', '.join(self._takers)}")
        self._takers[name](value)

    def _take_theme(self, value: object) -> None:
        if not isinstance(value, str):
            raise ValueError("theme is the name of one, in quotes")
        self.theme = value

    def _take_colours(self, value: object) -> None:
        ways = [way.value for way in ColorBy]
        if value not in ways:
            raise ValueError(f"colours are one of {', '.join(ways)}, not {value!r}")
        self.colours = ColorBy(value)

    def _take_time(self, value: object) -> None:
        forms = [form.value for form in TimeFormat]
        if value not in forms:
            raise ValueError(f"time is one of {', '.join(forms)}, not {value!r}")
        self.time = TimeFormat(value)

    def _take_columns(self, value: object) -> None:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise ValueError('columns are a list of names in quotes, such as ["No.", "API=20"]')
        self.columns = ListColumns.of(value)

    def _take_keys(self, value: object) -> None:
        if not isinstance(value, dict) or not all(isinstance(each, str) and each for each in value.values()):
            raise ValueError('keys have a name and a key in quotes, such as "main.flip" = "R"')
        self.keys = value


def path() -> Path:
    """The file. Raises `OSError` for a user without a home."""
    return config_folder() / "config.toml"


def load() -> Settings:
    """What the file says."""
    settings = Settings()
    try:
        values = tomllib.loads(_text())
    except (FileNotFoundError, NotADirectoryError):
        return settings
    except (OSError, ValueError, RecursionError) as error:
        settings.problem = _told(error)
        return settings
    for name, value in values.items():
        try:
            settings.take(name, value)
        except ValueError as error:
            settings.problem = settings.problem or _told(error)
    return settings


def change(name: str, value: str | list[str] | None) -> None:
    """Have a setting in the file, or with None no longer. Raises `OSError`, and `ValueError` with a plain line where
    the file can't be changed without harm to what else stands in it."""
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
        raise ValueError(f"{name} can't be changed there without harm: write it on one line, before all tables")
    if new != text:
        write_whole(path().resolve(), new.encode())


def _text() -> str:
    with path().open("rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(f"it has more than {_LARGEST:,} bytes")
    return data.decode()


def _told(error: Exception) -> str:
    words = (error.strerror if isinstance(error, OSError) else None) or str(error) or "it is nested too deeply"
    return clean(f"config.toml: {words}")

"""The text of a baseline: TOML that people read in a pull request and edit by hand."""

import json
import re
from collections.abc import Mapping
from typing import Final, TypeVar

from dissector.analysis.baseline.baseline import SETTINGS, TIMES, Baseline
from dissector.core.text import clean
from dissector.core.toml_text import read_toml

_HEAD: Final = """\
# What {software} does on the wire. `kdissect diff CAPTURE --baseline FILE` compares another capture with it.
# Delete the lines of settings and times that may change; delete [versions] if no version counts.
"""
LACKS: Final = "lacks"
"""The key, in the table of the client, of what was not captured."""
LONGEST: Final = 1 << 16
"""Characters of a baseline, at most: one has some dozens of lines."""
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_KEY: Final = re.compile(r"\s*(?:\"((?:[^\"\\]|\\.)*)\"|([A-Za-z0-9_-]+))\s*=")
_MS: Final = 1_000_000
_Entry = TypeVar("_Entry", str, int)


class BaselineError(ValueError):
    """A text that is no baseline, in one line."""


def write_baseline(baseline: Baseline) -> str:
    """Return the text of a baseline."""
    software = clean(baseline.software)
    times = {f"{name} (ms)": round(ns / _MS) for name, ns in baseline.times.items()}
    client = {"software": baseline.software} | ({LACKS: baseline.lacks} if baseline.lacks else {})
    tables: dict[str, Mapping[str, str | int]] = {
        "client": client, "settings": baseline.settings, "times": times,
        "versions": baseline.versions,
    }  # fmt: skip
    lines = [_HEAD.format(software=software)]
    for table, values in tables.items():
        lines += [f"[{table}]", *(f"{_text(name)} = {_value(value)}" for name, value in values.items()), ""]
    return "\n".join(lines)


def _text(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _value(value: str | int) -> str:
    return str(value) if isinstance(value, int) else _quoted(value)


def _quoted(text: str) -> str:
    """Return a basic string: as in JSON, but that DEL is escaped, too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_baseline(text: str) -> tuple[Baseline, dict[str, int]]:
    """Return a baseline, and the line of each of its entries by ``table.name``. Raises `BaselineError`."""
    if len(text) > LONGEST:
        raise BaselineError(f"more than {LONGEST:,} characters")
    try:
        tables = read_toml(text)
    except ValueError as error:
        raise BaselineError(str(error)) from None
    for name in tables.keys() - {"client", "settings", "times", "versions"}:
        raise BaselineError(f"[{name}]: a baseline has the tables client, settings, times and versions")
    settings = _table(tables, "settings", str)
    for name in settings.keys() - SETTINGS.keys():
        raise BaselineError(f"settings: unknown name {name!r}; known are {', '.join(SETTINGS)}")
    times = {name.removesuffix(" (ms)"): value for name, value in _table(tables, "times", int).items()}
    for name in times.keys() - TIMES.keys():
        raise BaselineError(f"times: unknown name {name!r}; known are {', '.join(f'{each} (ms)' for each in TIMES)}")
    client = _table(tables, "client", str)
    versions = _table(tables, "versions", str)
    times_ns = {name: value * _MS for name, value in times.items()}
    baseline = Baseline(client.get("software", ""), versions, settings, times_ns, client.get(LACKS, ""))
    return baseline, _lines(text)


def _table(tables: Mapping[str, object], name: str, kind: type[_Entry]) -> dict[str, _Entry]:
    found: dict[str, _Entry] = {}
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise BaselineError(f"{name} is not a table")
    for key, value in table.items():
        if not isinstance(value, kind) or isinstance(value, bool):
            raise BaselineError(f"{name}: {key!r} must be {'text' if kind is str else 'a whole number'}")
        found[key] = value
    return found


def _lines(text: str) -> dict[str, int]:
    """Return the line of each entry, from 1."""
    lines: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip().startswith("["):
            table = line.strip().strip("[] ")
        elif match := _KEY.match(line):
            name = match[2] or json.loads(f'"{match[1]}"')
            lines[f"{table}.{name.removesuffix(' (ms)') if table == 'times' else name}"] = number
    return lines

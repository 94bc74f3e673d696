"""What was meant by a file that is not there: a filter without quotes, a broker, a name with a slip in it.

Invariant: this is imported when a file is missing, and reads no more than the names in one folder.
"""

import os
import re
import shlex
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

ALIKE: Final = 0.75
"""How alike, from 0 to 1, two names of files are for the one to be meant by the other."""
MOST_NAMES: Final = 10_000
"""Names of a folder that are compared."""
_OPERATORS: Final = frozenset((
    "==", "!=", "<", "<=", ">", ">=", "&&", "||", "!", "(", ")", "and", "or", "not", "in", "contains", "matches",
    "exists", "like", "=", "is",
))  # fmt: skip
_COMPARISON: Final = re.compile(r"[=<>]=?|!=|&&|\|\|| (?:contains|matches|in) ")
_BROKER: Final = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9][A-Za-z0-9.-]*):\d{1,5}")
_SAMPLES: Final = "samples"


def missing_file_hint(path: str, values: Mapping[str, Any]) -> str:
    """Return what to do about a file that is not there, as the end of a line; an empty string if nothing is known.
    `values` are those of the command's parameters, by their names."""
    hint = (
        _split_filter(path, values) or _broker(path, values) or _split_fields(path, values) or _no_option(path)
        or _pattern(path) or _json(path) or _sample(path) or _similar(path)
    )  # fmt: skip
    return f"; {hint}" if hint else ""


def _behind(path: str, values: Mapping[str, Any]) -> list[str]:
    """Return the files from the missing one on."""
    files = values.get("files")
    return files[files.index(path) :] if isinstance(files, list) and path in files else []


def _split_filter(path: str, values: Mapping[str, Any]) -> str:
    """``-Y api == Produce``, which a shell splits."""
    begun, rest = values.get("filter"), _behind(path, values)
    if not begun or path not in _OPERATORS or not rest:
        return ""
    return f"a filter with spaces needs quotes: -Y {shlex.quote(' '.join([begun, *rest]))}"


def _broker(path: str, values: Mapping[str, Any]) -> str:
    if not _BROKER.fullmatch(path):
        return ""
    if "broker" in values:
        return "the capture comes first, then the broker"
    return f"for a broker: kdissect probe {path}, or kdissect proxy {path}"


def _split_fields(path: str, values: Mapping[str, Any]) -> str:
    """``--fields api latency``."""
    from dissector.exchange.row_fields import ROW_FIELDS

    begun, rest = values.get("fields"), _behind(path, values)
    if not begun or not rest or not all(each.strip(",") in ROW_FIELDS for each in rest):
        return ""
    names = [name for each in (begun, *rest) for name in each.split(",") if name]
    return f"separate field names with commas: --fields {','.join(names)}"


def _no_option(path: str) -> str:
    """A filter where a file is expected."""
    if not _COMPARISON.search(path) or "/" in path:
        return ""
    from dissector.filter import FilterError, parse

    try:
        parse(path)
    except FilterError:
        return ""
    return f"a filter stands behind -Y: -Y {shlex.quote(path)}"


def _pattern(path: str) -> str:
    return "no file matches this pattern" if re.search(r"[*?]|\[.+\]", path) else ""


def _json(path: str) -> str:
    return "JSON is read from a file or from a pipe: echo '{…}' | kdissect encode" if path.startswith("{") else ""


def _sample(path: str) -> str:
    folder = Path(path).parent
    missing = folder.name == _SAMPLES and not folder.exists()
    return f"kdissect samples {shlex.quote(str(folder))} puts the samples there" if missing else ""


def _similar(path: str) -> str:
    """Names in the same folder that are alike, or the same with a suffix."""
    folder, name = os.path.split(path)
    try:
        with os.scandir(folder or ".") as entries:
            names = [each.name for each, _ in zip(entries, range(MOST_NAMES), strict=False)]
    except OSError:
        return ""
    near = [each for each in sorted(names) if name and each.startswith(f"{name}.")]
    if not near and name:
        stems = {Path(each).stem: each for each in sorted(names)}  # a suffix in common says nothing
        near = [stems[each] for each in get_close_matches(Path(name).stem, stems, 2, ALIKE)]
    return f"did you mean {' or '.join(str(Path(folder, each)) for each in dict.fromkeys(near))}" if near else ""

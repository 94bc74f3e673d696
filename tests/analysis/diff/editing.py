"""Captures to compare: bundled ones, and copies in which our encoder changed something."""

import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from dissector.analysis.diff import DiffEntry, DiffResult, DiffSide, diff
from dissector.capture_session import Capture
from dissector.cli.encode import CaptureTarget, add_line
from dissector.exchange.to_json import json_line
from tests.conftest import PCAPS

Lines = list[dict[str, Any]]


def bundled(name: str) -> str:
    return str(PCAPS / f"{name}.pcapng")


def side(path: str) -> DiffSide:
    """Return a capture as a side, read to its end; it is closed with the test process. A bundled one is read once."""
    return _bundled_side(path) if Path(path).is_relative_to(PCAPS) else _read(path)


@lru_cache(maxsize=8)
def _bundled_side(path: str) -> DiffSide:
    return _read(path)


def _read(path: str) -> DiffSide:
    capture = Capture([path])
    for _ in capture.read():
        pass
    return DiffSide(capture, Path(path).stem)


def compared(a: str, b: str) -> DiffResult:
    return diff(side(a), side(b))


def lines_of(path: str) -> Lines:
    with Capture([path]) as capture:
        return [json.loads(json_line(exchange)) for exchange in capture.exchanges()]


@lru_cache(maxsize=8)
def _lines_as_text(path: str) -> str:
    return json.dumps(lines_of(path))


def edited(path: str, folder: Path, edit: Callable[[Lines], Lines | None]) -> str:
    """Write a copy of a capture, with its JSON changed by `edit`, in place or as a new list."""
    lines = json.loads(_lines_as_text(path)) if Path(path).is_relative_to(PCAPS) else lines_of(path)
    lines = edit(lines) or lines
    sink = CaptureTarget()
    for line in lines:
        add_line(sink, line)
    out = folder / "edited.pcapng"
    with out.open("wb") as file:
        file.writelines(sink.pcapng("a test"))
    return str(out)


def of(lines: Lines, api: str) -> Lines:
    return [line for line in lines if line.get("api") == api]


def entry_texts(comparison: DiffResult) -> list[tuple[str, str, str, str, str]]:
    """Return the entries in brief: API, part and path, reason, A, B."""
    return [(e.api, ".".join(filter(None, (e.part, e.path))), str(e.reason), e.a, e.b) for e in comparison.entries]


def only(comparison: DiffResult) -> DiffEntry:
    [entry] = comparison.entries
    return entry

"""What the report of a failed test says of its captures."""

import re
import shlex
import shutil
from hashlib import blake2s
from itertools import islice
from pathlib import Path
from typing import Final

import pytest

from dissector.capture.errors import CaptureError
from dissector.core.text import clean, counted
from dissector.pytest_plugin.wire import Wire, line

MOST_ROWS: Final = 100
_LONGEST_NAME: Final = 150
_IN_NAMES: Final = re.compile(r"[^\w.-]+", re.ASCII)


def add_traffic(report: pytest.TestReport, wire: Wire, number: int, item: pytest.Item) -> None:
    """Add a section with the exchanges to a report, and where the capture is kept, also as a property of JUnit's. The
    section is a part of the failure's text, which JUnit's reports have, other than pytest's own sections."""
    if not wire.has_begun:
        return
    try:
        rows = _rows(wire)
    except (CaptureError, RuntimeError, ValueError, OSError) as error:
        rows = [f"not read: {error}"]
    if wire.dropped:
        rows.append(f"The kernel dropped {counted(wire.dropped, 'packet')}.")
    if wire.settings.path.exists():
        try:
            kept = _kept(wire, number, item)
        except OSError as error:
            rows.append(f"not kept: {error}")
        else:
            rows.append(f"kept: kdissect {shlex.quote(kept)}")
            item.user_properties.append((wire.settings.fixture, kept))  # JUnit reports write them after teardown
    title, text = f"Kafka traffic of {clean(wire.settings.words)}", "\n".join(rows)
    add = getattr(report.longrepr, "addsection", None)
    if add is not None:
        add(title, text)
    else:  # the failure is a text alone
        report.sections.append((title, text))


def _rows(wire: Wire) -> list[str]:
    """Return a line for each exchange, around the one that was looked at last where there are many."""
    capture, marked = wire.capture, wire.looked_at
    first = max(0, min(len(capture) - MOST_ROWS, (marked or 1) - MOST_ROWS // 2))
    chosen = islice(capture.exchanges(), first, first + MOST_ROWS)
    rows = [f"{'>' if each.number == marked else ' '} {line(each)}" for each in chosen]
    if not rows:
        return [wire.hint or "no exchanges"]
    left = len(capture) - len(rows)
    return [*rows, f"  and {left:,} more"] if left else rows


def _kept(wire: Wire, number: int, item: pytest.Item) -> str:
    """Copy the capture to where it is kept; return its path. Raises `OSError`."""
    folder = kept_folder(item.config)
    folder.mkdir(parents=True, exist_ok=True)
    return str(shutil.copy(wire.settings.path, folder / kept_name(item.nodeid, number)))


def kept_folder(config: pytest.Config) -> Path:
    """Return the folder that the settings name, or that of the report, or ``kafka-captures``."""
    if named := str(config.getini("kafka_capture_folder")):
        return config.rootpath / named
    report = config.getoption("xmlpath", None)
    return Path(report).expanduser().absolute().parent if report else config.rootpath / "kafka-captures"


def kept_name(test: str, number: int) -> str:
    """Return the name of a file for a test; one that had to be changed ends with digits of the test's own name."""
    plain = test.replace("::", ".").replace("/", ".")
    name = _IN_NAMES.sub("-", plain)[:_LONGEST_NAME].rstrip("-")
    if name != plain:
        name += "-" + blake2s(test.encode(), digest_size=4).hexdigest()
    return f"{name}{f'-{number}' if number > 1 else ''}.pcapng"

"""Captures made by our encoder, message by message, for rules that no real client breaks."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from dissector.analysis.conformance import CheckResult, check
from dissector.capture_session import Capture
from dissector.cli.encode import CaptureTarget, add_line

Body = Mapping[str, Any]
EMPTY: Final[Body] = {}
START_NS = 1_800_000_000_000_000_000
MS = 1_000_000


class Step(NamedTuple):
    """An exchange: what is asked, what is answered (None for no response), and when, in milliseconds."""

    api: str
    version: int
    request: Body = EMPTY
    response: Body | None = EMPTY
    at: int | None = None
    answered: int | None = None
    correlation_id: int | None = None


def made(folder: Path, steps: Iterable[Step]) -> str:
    """Write a capture of one connection; by default an exchange lasts 1 ms, and one follows the other after 10 ms."""
    target = CaptureTarget()
    for number, step in enumerate(steps, 1):
        at = number * 10 if step.at is None else step.at
        line: dict[str, Any] = {
            "kind": "exchange", "number": number, "connection": 1,
            "client": "10.0.0.1:50000", "server": "10.0.0.2:9092",
            "api": step.api, "api_version": step.version, "client_id": "maker",
            "correlation_id": number if step.correlation_id is None else step.correlation_id,
            "request": {"time_ns": START_NS + at * MS, "body": step.request},
        }  # fmt: skip
        if step.response is not None:
            answered = at + 1 if step.answered is None else step.answered
            line["response"] = {"time_ns": START_NS + answered * MS, "body": step.response}
        add_line(target, line)
    path = folder / "made.pcapng"
    with path.open("wb") as file:
        file.writelines(target.pcapng("a test"))
    return str(path)


def checked(*paths: str) -> CheckResult:
    captures = []
    for path in paths:
        capture = Capture([path], show_secrets=True)
        for _ in capture.read():
            pass
        captures.append((path, capture))
    return check(captures)

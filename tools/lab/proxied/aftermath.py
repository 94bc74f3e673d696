"""What a client did after a fault, read from the recording; what became of its records, read from the topic."""

from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

import dissector

CONSUMED: Final = 40
"""Records that the task produces, and then consumes."""
_LOOKED_UP: Final = ("Metadata", "FindCoordinator", "ApiVersions")
_LONGEST: Final = 90


class Aftermath(NamedTuple):
    """Facts of one run."""

    fired: int
    """How often the fault was injected."""
    looked_up: list[str]
    """What the client asked between the first fault and its next request of that API."""
    again_ms: int | None
    """When that request came, after the fault's request; None if none came."""
    reconnected: bool
    """Whether it came on a connection that began after the fault."""
    there: int
    """Different records in the topic."""
    twice: int
    """Records more than that."""
    failure: str
    """The last line of the client's error output, if it failed."""


def aftermath(path: Path, failure: str, fired: int, values: list[bytes]) -> Aftermath:
    """Read a recording; `values` are what tells the topic's records apart."""
    counted = Counter(values)
    looked_up: list[str] = []
    again_ms, reconnected = None, False
    with dissector.open(str(path)) as capture:
        rows = sorted(capture.exchanges(), key=lambda each: each.number)
        injected = {each.number for each in capture.exchanges('finding == "injected"')}
        hurt = next((each for each in rows if each.number in injected), None)
        if hurt is not None:
            known = {each.connection for each in rows if each.number <= hurt.number}
            for each in rows:
                if each.number <= hurt.number:
                    continue
                if each.api == hurt.api and each.client_id == hurt.client_id:
                    again_ms = round((each.time_ns - hurt.time_ns) / 1e6)
                    reconnected = each.connection not in known
                    break
                if each.api in _LOOKED_UP and each.api not in looked_up:
                    looked_up.append(each.api)
    return Aftermath(
        fired, looked_up, again_ms, reconnected, len(counted), counted.total() - len(counted), _last_line(failure)
    )


def _last_line(failure: str) -> str:
    """The line that names an error, else the last one."""
    lines = [line.strip() for line in failure.splitlines() if line.strip()]
    named = [line for line in lines if "Error" in line or "Exception" in line or "error" in line]
    return (named or lines or [""])[-1][:_LONGEST]

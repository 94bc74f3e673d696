"""`kdissect stats --connections`: what TCP did on each connection, and whose it is, as a table or as JSON."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from dissector.capture_session import Capture
from dissector.cli.formats import StatsFormat
from dissector.cli.render.pages import DIM, NAME, print_lines, table, write_out
from dissector.core.arrays import Int64
from dissector.core.json_text import dumps
from dissector.core.text import duration, size
from dissector.transport.tcp_facts import DirectionFacts

_HEAD = (
    "conn", "count", "out", "in", "rtt", "ack rtt", "retransmitted", "lost", "0 win", "full",
    "client", "broker", "process",
)  # fmt: skip
_STYLES = ("",) * 10 + (NAME, NAME, DIM)


def write_connections(capture: Capture, rows: Int64 | None, form: StatsFormat) -> int:
    """Write a line for each connection of these rows, or of all; return the exit code 0."""
    found = connections_of(capture, rows)
    if form is StatsFormat.JSON:
        return write_out(dumps(each) + b"\n" for each in found)
    return print_lines(table(_HEAD, [_cells(each) for each in found], _STYLES, indent=0))


def connections_of(capture: Capture, rows: Int64 | None) -> Iterator[dict[str, Any]]:
    """The connections of these rows, or of all, as JSON objects; times in nanoseconds, sizes in bytes."""
    numbers = capture.index.numbers(np.arange(len(capture)) if rows is None else rows).connection
    for number, count in zip(*(each.tolist() for each in np.unique(numbers, return_counts=True)), strict=True):
        facts = capture.connections.facts(number)
        if facts is None:
            continue
        client, server = capture.connections.ends(number)
        tcp, process, other = facts.tcp, facts.process, facts.server_process
        yield {
            "connection": number, "client": client, "server": server, "rows": count,
            "process": None if process is None else process._asdict(),
            "server_process": None if other is None else other._asdict(),
            "handshake_ns": tcp and tcp.handshake_ns, "ack_ns": tcp and tcp.ack_ns,
            "least_ack_ns": tcp and tcp.least_ack_ns,
            "out": None if tcp is None else tcp.sides[0]._asdict(),
            "in": None if tcp is None else tcp.sides[1]._asdict(),
        }  # fmt: skip


def _cells(found: dict[str, Any]) -> list[str]:
    both = [DirectionFacts(**found[way]) if found[way] else DirectionFacts(0, 0, 0, 0, 0, 0) for way in ("out", "in")]
    times = ["" if found[name] is None else duration(found[name]) for name in ("handshake_ns", "least_ack_ns")]
    processes = [each and f"{each['name']} {each['pid']}" for each in (found["process"], found["server_process"])]
    return [
        f"C{found['connection']}", f"{found['rows']:,}", *(size(each.bytes) for each in both), *times,
        size(sum(each.retransmitted for each in both)), size(sum(each.lost for each in both)),
        f"{sum(each.zero_windows for each in both):,}", f"{sum(each.full_windows for each in both):,}",
        found["client"], found["server"],
        " → ".join(_known(processes)),
    ]  # fmt: skip


def _known(processes: Iterable[str | None]) -> list[str]:
    words = [each or "?" for each in processes]
    return words if any(each != "?" for each in words) else []

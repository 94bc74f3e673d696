"""The overview's lines about connections: what became of those to each broker, and handshakes that stay encrypted.

A line's target is a filter, or a row from 0.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from dissector.analysis.stats.breakdowns import quoted
from dissector.analysis.stats.broker_connections import (
    MOST_UNUSED,
    BrokerConnections,
    Reconnections,
    UnusedConnection,
    broker_connections,
)
from dissector.analysis.stats.tls_handshakes import TlsHandshake, tls_handshakes
from dissector.capture_session import Capture
from dissector.core.finding import Severity
from dissector.core.text import clean, duration, rough_duration, seconds, shortened
from dissector.exchange.tls_words import handshake_fields
from tui.row_states import ERROR_MARKS
from tui.widgets.line_list import StyledLine

LONG_SILENCE_NS: Final = 10**9
"""From here on a silence is an alarm."""
FEW_UNUSED: Final = 3
"""Unused connections below a broker, unless there is room for all."""
MOST_RANGES: Final = 20
"""Of connections in a filter; beyond, it is the broker's."""
LONGEST_NAME: Final = 40
_BAD, _WARNING = ERROR_MARKS[Severity.ERROR], ERROR_MARKS[Severity.WARNING]


class CaptureConnections(NamedTuple):
    """What is known of a capture's connections."""

    start_ns: int = 0
    """Of the capture."""
    brokers: Sequence[BrokerConnections] = ()
    handshakes: Sequence[TlsHandshake] = ()
    all_handshakes: int = 0
    """How many there are."""


NO_ENDS: Final = CaptureConnections()


def connection_ends(capture: Capture) -> CaptureConnections:
    """Return what is known of a capture's connections. It takes seconds where there are many."""
    return CaptureConnections(capture.start_ns, broker_connections(capture), *tls_handshakes(capture))


def head_line(words: str) -> StyledLine:
    """Return the heading of a section."""
    return StyledLine(((words, "head"),), is_head=True)


def rest_lines(left: int) -> Iterator[StyledLine]:
    """Yield how many are not shown, if any."""
    if left > 0:
        yield StyledLine(((f"{left:>8,} more", "dim"),))


def broker_lines(ends: CaptureConnections, most: int) -> Iterator[StyledLine]:
    """Yield a line for each broker, below it what is wrong there."""
    yield head_line(f"{'conns':>8}{'refused':>9}{'unused':>8}{'no reply':>10}{'silent':>10}  Brokers")
    for broker in ends.brokers[:most]:
        silent = broker.silence.length_ns if broker.silence is not None else 0
        is_long = silent >= LONG_SILENCE_NS
        pieces = (
            (f"{broker.connections:>8,}", ""), (f"{broker.refused or '':>9}", "bad"), (f"{broker.unused or '':>8}", ""),
            (f"{broker.unanswered or '':>10}", "warning"),
            (f"{duration(silent) if silent else '':>10}", "bad" if is_long else ""),
            (f"  {clean(broker.server)}", "name"),
        )  # fmt: skip
        yield StyledLine(pieces, f"server == {quoted(broker.server)}")
        if broker.storm is not None:
            yield _storm_line(broker, broker.storm)
        if broker.silence is not None and is_long:
            words = f"no response to any client for {rough_duration(silent)} after the request of row "
            yield _trouble(*_BAD, f"{words}{broker.silence.row + 1:,}", broker.silence.row)
        few = broker.unused_connections[: FEW_UNUSED if most < MOST_UNUSED else MOST_UNUSED]
        for unused in few:
            yield _unused_line(ends.start_ns, unused)
        if few:
            yield from rest_lines(broker.unused - len(few))
    yield from rest_lines(len(ends.brokers) - most)


def _trouble(mark: str, role: str, words: str, target: object = None) -> StyledLine:
    return StyledLine(((f"{mark:>8} ", role), (words, role if target is not None else "")), target)


def _storm_line(broker: BrokerConnections, storm: Reconnections) -> StyledLine:
    words = (
        f"{storm.attempts:,} connections of {clean(shortened(storm.client, LONGEST_NAME))}, each after an earlier one "
    )
    words += f"was closed, within {rough_duration(storm.span_ns)}"
    ranges = list(_ranges(storm.connections))
    chosen = f"conn in {{{', '.join(ranges)}}}" if len(ranges) <= MOST_RANGES else f"server == {quoted(broker.server)}"
    return _trouble(*_BAD, words, chosen if ranges else None)


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    """Yield ascending numbers as a filter has them: ``3..5``, ``7``."""
    ends = [at + 1 for at, (before, after) in enumerate(pairwise(numbers)) if after != before + 1]
    for start, stop in pairwise([0, *ends, len(numbers)]) if numbers else ():
        first, last = numbers[start], numbers[stop - 1]
        yield str(first) if first == last else f"{first}..{last}"


def _unused_line(start_ns: int, unused: UnusedConnection) -> StyledLine:
    what = "no message" if unused.is_silent else "only ApiVersions or a login"
    lived = duration(unused.end_ns - unused.begin_ns)
    how = f"closed after {lived}" if unused.is_closed else f"open for {lived}"
    words = f"C{unused.number} {clean(unused.client)}: {what}, from {seconds(unused.begin_ns - start_ns)} s on, {how}"
    return _trouble(*_WARNING, words, None if unused.is_silent else f"conn == {unused.number}")


def handshake_lines(ends: CaptureConnections, width: int, most: int) -> Iterator[StyledLine]:
    """Yield a line for each connection that stays encrypted, below it what its handshake says."""
    yield head_line("  TLS handshakes of connections that are not decrypted")
    for each in ends.handshakes[:most]:
        mark, role = _BAD if each.is_failed else (" ", "")
        said = [] if each.session is None else handshake_fields(each.session)
        by_name = {name: clean(shortened(value)) for name, value in said}
        name = by_name.get("host name (SNI)")
        words = [
            by_name.get("version", "no hello" if each.session is None or each.session.hello is None else "no answer"),
            f"to {name}" if name else "without a host name (SNI)" if each.session is not None else "",
            f"alert {each.alert}" if each.alert else by_name.get("exchanges", ""),
        ]
        ends_words = f"C{each.connection} {clean(each.client)} → {clean(each.server)}"
        pieces = ((f"{mark:>3} ", role), (ends_words, "name"), (f"  {' · '.join(filter(None, words))}", role))
        yield StyledLine(pieces, each.row)
        for whose in ("broker's certificate", "client's certificate"):
            if whose in by_name:
                yield StyledLine(((f"      {whose}: {by_name[whose]}"[:width], "dim"),))
    yield from rest_lines(ends.all_handshakes - min(most, len(ends.handshakes)))

"""Render a sequence diagram as Mermaid, text that GitHub and others draw, or as SVG: a column per lane, time downwards,
an arrow per message, a bar per request.

Labels of lanes and events are cleaned for display. In Mermaid, text from the wire can't be markup: every character with
a meaning is written as its number (``#59;``), and so is the word that would end a block. In SVG it is escaped, without
characters that XML does not allow.

Bars are on the lane of the server and end at the response; those of requests in flight together are side by side, which
shows pipelining. Lines are evenly spaced, with the time at the left.
"""

import re
from collections.abc import Iterator
from html import escape
from typing import Final

from dissector.analysis.sequence_diagram.diagram import Lane, SequenceDiagram, SequenceEvent
from dissector.core.text import clean, cut, duration, seconds

MAX_TEXT = 60


def lane_label(lane: Lane) -> str:
    """Return ``rdkafka · 127.0.0.1``."""
    name = lane.name or ("client" if lane.is_client else "broker")
    return clean(f"{name} · {lane.address}")


def event_label(event: SequenceEvent) -> str:
    """Return ``17 Fetch v12 · orders[0..3]``: the row number and the message."""
    return f"{event.number + 1} {message_label(event)}"


def message_label(event: SequenceEvent) -> str:
    """Return ``Fetch v12 · orders[0..3]``; for a response, with its latency: ``Fetch v12 · 2.0 ms``."""
    latency = "" if event.is_request or event.latency_ns is None else duration(event.latency_ns)
    return clean(" · ".join(filter(None, (event.label, latency, cut(event.words, MAX_TEXT)))))


_UNSAFE: Final = re.compile(r"[^\w .,/\[\]()·…|@=-]|\be(?=nd\b)", re.IGNORECASE)


def escape_mermaid(text: str) -> str:
    """Return text that Mermaid shows unchanged."""
    return _UNSAFE.sub(lambda match: f"#{ord(match[0])};", text)


def render_mermaid(diagram: SequenceDiagram) -> str:
    """Return the diagram. A response is a dashed arrow; with an error, it ends in a cross."""
    return "\n".join(_lines(diagram)) + "\n"


def _lines(diagram: SequenceDiagram) -> Iterator[str]:
    yield "sequenceDiagram"
    for number, lane in enumerate(diagram.lanes):
        kind = "actor" if lane.is_client else "participant"
        yield f"    {kind} L{number} as {escape_mermaid(lane_label(lane))}"
    for event in diagram:
        arrow = "--x" if event.error else "->>" if event.is_request else "-->>"
        yield f"    L{event.source}{arrow}L{event.target}: {escape_mermaid(event_label(event))}"


LEFT: Final = 110
TOP: Final = 50
LANE: Final = 420
LINE: Final = 26
BAR: Final = 5
MOST_BARS: Final = 12
_STYLE: Final = (
    "text{font:12px sans-serif;fill:#222}.t{font:11px monospace;fill:#666}.lane{stroke:#999}.head{font-weight:bold}"
    ".request{stroke:#06c}.response{stroke:#093;stroke-dasharray:5 3}.error{stroke:#c00}"
    "text.error{fill:#c00;stroke:none}"
    ".bar{fill:#06c;fill-opacity:.25}"
)


def render_svg(diagram: SequenceDiagram) -> str:
    """Return the picture, a complete document."""
    width, height = LEFT + LANE * max(1, len(diagram.lanes) - 1) + LEFT * 2, TOP + LINE * (len(diagram) + 2)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    body = "\n".join((*_lanes(diagram, height), *_bars(diagram), *_arrows(diagram)))
    return f"{head}\n<style>{_STYLE}</style>\n{_MARKER}\n{body}\n</svg>\n"


_MARKER: Final = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0L8 4L0 8z" fill="#444"/></marker></defs>'
)


def _x(lane: int) -> int:
    return LEFT + 60 + LANE * lane


def _y(at: int) -> int:
    return TOP + LINE * (at + 1)


def _lanes(diagram: SequenceDiagram, height: int) -> Iterator[str]:
    for number, lane in enumerate(diagram.lanes):
        x = _x(number)
        words = escape(lane_label(lane), quote=False)
        yield f'<text class="head" x="{x}" y="{TOP - 20}" text-anchor="middle">{words}</text>'
        yield f'<line class="lane" x1="{x}" y1="{TOP - 10}" x2="{x}" y2="{height - 10}"/>'


def _bars(diagram: SequenceDiagram) -> Iterator[str]:
    """Yield a bar from each request to its response, on the server's lane."""
    for at, partner in enumerate(diagram.partner.tolist()):
        if partner > at and diagram.is_request[at]:
            x = _x(int(diagram.target[at])) + BAR * min(MOST_BARS, int(diagram.depth[at]) - 1)
            yield f'<rect class="bar" x="{x}" y="{_y(at)}" width="{BAR}" height="{_y(partner) - _y(at)}"/>'


def _arrows(diagram: SequenceDiagram) -> Iterator[str]:
    for at, event in enumerate(diagram):
        yield from _arrow(at, event, diagram.capture.start_ns)


def _arrow(at: int, event: SequenceEvent, start: int) -> Iterator[str]:
    y, low, high = _y(at), _x(event.source), _x(event.target)
    kind = "error" if event.error else "request" if event.is_request else "response"
    yield f'<text class="t" x="6" y="{y + 4}">{seconds(event.time_ns - start)}</text>'
    yield f'<line class="{kind}" x1="{low}" y1="{y}" x2="{high}" y2="{y}" marker-end="url(#tip)"/>'
    place = (min(low, high) + max(low, high)) // 2
    mark = ' class="error"' if event.error else ""
    words = escape(event_label(event), quote=False)
    yield f'<text{mark} x="{place}" y="{y - 4}" text-anchor="middle">{words}</text>'

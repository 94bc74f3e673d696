"""A ladder as an SVG picture: a lane a column, time downwards, an arrow a message, a bar for what each request took.

Bars stand on the lane of the server, those of requests in flight together side by side: so pipelining can be seen.
Lines are evenly spaced; the time stands at their left. Words from the wire are escaped, and clean of what XML can't
hold.
"""

from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape

from dissector.analysis.sequence_diagram.diagram import SequenceDiagram, SequenceEvent
from dissector.analysis.sequence_diagram.labels import event_label, lane_label
from dissector.core.text import seconds

LEFT: Final = 110
TOP: Final = 50
LANE: Final = 420
LINE: Final = 26
BAR: Final = 5
MOST_BARS: Final = 12
_STYLE: Final = (
    "text{font:12px sans-serif;fill:#222}.t{font:11px monospace;fill:#666}.lane{stroke:#999}.head{font-weight:bold}"
    ".ask{stroke:#06c}.answer{stroke:#093;stroke-dasharray:5 3}.error{stroke:#c00}text.error{fill:#c00;stroke:none}"
    ".bar{fill:#06c;fill-opacity:.25}"
)


def render_svg(ladder: SequenceDiagram) -> str:
    """The picture, a document of its own."""
    width, height = LEFT + LANE * max(1, len(ladder.lanes) - 1) + LEFT * 2, TOP + LINE * (len(ladder) + 2)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    body = "\n".join((*_lanes(ladder, height), *_bars(ladder), *_arrows(ladder)))
    return f"{head}\n<style>{_STYLE}</style>\n{_MARKER}\n{body}\n</svg>\n"


_MARKER: Final = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0L8 4L0 8z" fill="#444"/></marker></defs>'
)


def _x(lane: int) -> int:
    return LEFT + 60 + LANE * lane


def _y(at: int) -> int:
    return TOP + LINE * (at + 1)


def _lanes(ladder: SequenceDiagram, height: int) -> Iterator[str]:
    for number, lane in enumerate(ladder.lanes):
        x = _x(number)
        words = escape(lane_label(lane))
        yield f'<text class="head" x="{x}" y="{TOP - 20}" text-anchor="middle">{words}</text>'
        yield f'<line class="lane" x1="{x}" y1="{TOP - 10}" x2="{x}" y2="{height - 10}"/>'


def _bars(ladder: SequenceDiagram) -> Iterator[str]:
    """From each request to its response, on the server's lane."""
    for at, partner in enumerate(ladder.partner.tolist()):
        if partner > at and ladder.is_request[at]:
            x = _x(int(ladder.target[at])) + BAR * min(MOST_BARS, int(ladder.depth[at]) - 1)
            yield f'<rect class="bar" x="{x}" y="{_y(at)}" width="{BAR}" height="{_y(partner) - _y(at)}"/>'


def _arrows(ladder: SequenceDiagram) -> Iterator[str]:
    start = int(ladder.time_ns[0]) if len(ladder) else 0
    for at, event in enumerate(ladder):
        yield from _arrow(at, event, start)


def _arrow(at: int, event: SequenceEvent, start: int) -> Iterator[str]:
    y, low, high = _y(at), _x(event.source), _x(event.target)
    kind = "error" if event.error else "ask" if event.is_request else "answer"
    yield f'<text class="t" x="6" y="{y + 4}">{seconds(event.time_ns - start)}</text>'
    yield f'<line class="{kind}" x1="{low}" y1="{y}" x2="{high}" y2="{y}" marker-end="url(#tip)"/>'
    place = (min(low, high) + max(low, high)) // 2
    mark = ' class="error"' if event.error else ""
    yield f'<text{mark} x="{place}" y="{y - 4}" text-anchor="middle">{escape(event_label(event))}</text>'

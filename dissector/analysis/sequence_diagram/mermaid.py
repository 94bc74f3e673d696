"""Render a sequence diagram as Mermaid: text that GitHub and others draw.

Text from the wire can't be markup: every character with a meaning in Mermaid is written as its number (``#59;``), and
so is the word that would end a block.
"""

import re
from collections.abc import Iterator
from typing import Final

from dissector.analysis.sequence_diagram.diagram import SequenceDiagram
from dissector.analysis.sequence_diagram.labels import event_label, lane_label

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

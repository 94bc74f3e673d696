"""The sequence of messages between clients and brokers, and pictures of it."""

from dissector.analysis.sequence_diagram.diagram import Event, Ladder, Lane, ladder_of
from dissector.analysis.sequence_diagram.mermaid import mermaid
from dissector.analysis.sequence_diagram.svg import svg

__all__ = ["Event", "Ladder", "Lane", "ladder_of", "mermaid", "svg"]

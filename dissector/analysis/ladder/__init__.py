"""The sequence of messages between clients and brokers, and pictures of it."""

from dissector.analysis.ladder.ladder import Event, Ladder, Lane, ladder_of
from dissector.analysis.ladder.mermaid import mermaid
from dissector.analysis.ladder.svg import svg

__all__ = ["Event", "Ladder", "Lane", "ladder_of", "mermaid", "svg"]

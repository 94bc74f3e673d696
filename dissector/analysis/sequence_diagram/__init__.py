"""The sequence of messages between clients and brokers, and pictures of it."""

from dissector.analysis.sequence_diagram.diagram import Lane, SequenceDiagram, SequenceEvent, sequence_diagram
from dissector.analysis.sequence_diagram.mermaid import mermaid
from dissector.analysis.sequence_diagram.svg import svg

__all__ = ["Lane", "SequenceDiagram", "SequenceEvent", "mermaid", "sequence_diagram", "svg"]

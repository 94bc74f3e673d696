"""Sequence diagrams of the messages between clients and brokers."""

from dissector.analysis.sequence_diagram.diagram import Lane, SequenceDiagram, SequenceEvent, sequence_diagram
from dissector.analysis.sequence_diagram.pictures import render_mermaid, render_svg

__all__ = ["Lane", "SequenceDiagram", "SequenceEvent", "render_mermaid", "render_svg", "sequence_diagram"]

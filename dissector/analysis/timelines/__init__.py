"""What happened to groups and transactions, in phases."""

from dissector.analysis.timelines.reading import Reading, Step, groups, transactions
from dissector.analysis.timelines.timeline import Event, Phase, Timeline

__all__ = ["Event", "Phase", "Reading", "Step", "Timeline", "groups", "transactions"]

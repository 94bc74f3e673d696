"""What happened to groups and transactions, in phases."""

from dissector.analysis.timelines.reading import Reading, Step, groups, transactions
from dissector.analysis.timelines.timeline import Phase, Timeline, TimelineEvent

__all__ = ["Phase", "Reading", "Step", "Timeline", "TimelineEvent", "groups", "transactions"]

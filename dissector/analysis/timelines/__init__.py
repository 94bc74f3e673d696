"""Timelines of groups and transactions, in phases."""

from dissector.analysis.timelines.timeline import Phase, Timeline, TimelineEvent
from dissector.analysis.timelines.timeline_pass import TimelinePass, TimelineProgress

__all__ = ["Phase", "Timeline", "TimelineEvent", "TimelinePass", "TimelineProgress"]

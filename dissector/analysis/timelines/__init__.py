"""Timelines of groups and transactions, in phases."""

from dissector.analysis.timelines.timeline import Phase, Timeline, TimelineEvent
from dissector.analysis.timelines.timeline_pass import (
    TimelinePass,
    TimelineProgress,
    find_group_timelines,
    find_transaction_timelines,
)

__all__ = [
    "Phase",
    "Timeline",
    "TimelineEvent",
    "TimelinePass",
    "TimelineProgress",
    "find_group_timelines",
    "find_transaction_timelines",
]

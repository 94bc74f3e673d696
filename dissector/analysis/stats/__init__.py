"""Statistics of a capture: counts, bytes, latencies, errors, versions, by whatever exchanges have in common."""

from dissector.analysis.stats.counting import Counting, Step
from dissector.analysis.stats.field_bytes import FieldBytes, MessageKind, Sample
from dissector.analysis.stats.histogram import Histogram
from dissector.analysis.stats.statistics import Statistics
from dissector.analysis.stats.tallies import (
    ApiVersion,
    Client,
    Connection,
    Error,
    Group,
    Partition,
    Tally,
    Use,
    Versions,
)

__all__ = [
    "ApiVersion",
    "Client",
    "Connection",
    "Counting",
    "Error",
    "FieldBytes",
    "Group",
    "Histogram",
    "MessageKind",
    "Partition",
    "Sample",
    "Statistics",
    "Step",
    "Tally",
    "Use",
    "Versions",
]

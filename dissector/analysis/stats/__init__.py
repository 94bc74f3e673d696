"""Statistics of a capture: counts, bytes, latencies, errors and versions of exchanges, by what they have in common."""

from dissector.analysis.stats.counts import (
    ApiError,
    ApiVersion,
    ClientSoftware,
    CountsByKey,
    ExchangeCounts,
    Statistics,
    StatsConnection,
    TopicPartition,
    VersionSpan,
    VersionUse,
)
from dissector.analysis.stats.field_bytes import FieldBytes, MessageKind, MessageSample
from dissector.analysis.stats.histogram import Histogram
from dissector.analysis.stats.statistics_pass import StatisticsPass, StatisticsProgress

__all__ = [
    "ApiError",
    "ApiVersion",
    "ClientSoftware",
    "CountsByKey",
    "ExchangeCounts",
    "FieldBytes",
    "Histogram",
    "MessageKind",
    "MessageSample",
    "Statistics",
    "StatisticsPass",
    "StatisticsProgress",
    "StatsConnection",
    "TopicPartition",
    "VersionSpan",
    "VersionUse",
]

"""The fields of OpenTelemetry's metrics, as its specification has them (OTLP 1, metrics.proto).

A table in place of the library: it has what `protobuf.py` asks a descriptor for, and the program needs neither
`opentelemetry-proto` nor `protobuf`. A test holds it equal to the library's descriptors.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

_SCALARS: Final = {
    "double": 1, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "bool": 8, "string": 9, "bytes": 12, "uint32": 13,
    "sfixed64": 16, "sint32": 17,
}  # fmt: skip
"""Numbers of types, as descriptors have them."""
_MESSAGE, _ENUM = 11, 14
_ENUMS: Final = {
    "AggregationTemporality": (
        "AGGREGATION_TEMPORALITY_UNSPECIFIED", "AGGREGATION_TEMPORALITY_DELTA", "AGGREGATION_TEMPORALITY_CUMULATIVE",
    ),
}  # fmt: skip
_MESSAGES: Final = {
    "MetricsData": "1 resource_metrics ResourceMetrics",
    "ResourceMetrics": "1 resource Resource; 2 scope_metrics ScopeMetrics; 3 schema_url string",
    "Resource": "1 attributes KeyValue; 2 dropped_attributes_count uint32; 3 entity_refs EntityRef",
    "KeyValue": "1 key string; 2 value AnyValue; 3 key_strindex int32",
    "AnyValue": (
        "1 string_value string; 2 bool_value bool; 3 int_value int64; 4 double_value double; 5 "
        "array_value ArrayValue; 6 kvlist_value KeyValueList; 7 bytes_value bytes; 8 "
        "string_value_strindex int32"
    ),
    "ArrayValue": "1 values AnyValue",
    "KeyValueList": "1 values KeyValue",
    "EntityRef": "1 schema_url string; 2 type string; 3 id_keys string; 4 description_keys string",
    "ScopeMetrics": "1 scope InstrumentationScope; 2 metrics Metric; 3 schema_url string",
    "InstrumentationScope": "1 name string; 2 version string; 3 attributes KeyValue; 4 dropped_attributes_count uint32",
    "Metric": (
        "1 name string; 2 description string; 3 unit string; 5 gauge Gauge; 7 sum Sum; 9 histogram "
        "Histogram; 10 exponential_histogram ExponentialHistogram; 11 summary Summary; 12 metadata "
        "KeyValue"
    ),
    "Gauge": "1 data_points NumberDataPoint",
    "NumberDataPoint": (
        "2 start_time_unix_nano fixed64; 3 time_unix_nano fixed64; 4 as_double double; 5 exemplars "
        "Exemplar; 6 as_int sfixed64; 7 attributes KeyValue; 8 flags uint32"
    ),
    "Exemplar": (
        "2 time_unix_nano fixed64; 3 as_double double; 4 span_id bytes; 5 trace_id bytes; 6 as_int "
        "sfixed64; 7 filtered_attributes KeyValue"
    ),
    "Sum": (
        "1 data_points NumberDataPoint; 2 aggregation_temporality AggregationTemporality; 3 "
        "is_monotonic bool"
    ),
    "Histogram": "1 data_points HistogramDataPoint; 2 aggregation_temporality AggregationTemporality",
    "HistogramDataPoint": (
        "2 start_time_unix_nano fixed64; 3 time_unix_nano fixed64; 4 count fixed64; 5 sum double; 6 "
        "bucket_counts fixed64; 7 explicit_bounds double; 8 exemplars Exemplar; 9 attributes "
        "KeyValue; 10 flags uint32; 11 min double; 12 max double"
    ),
    "ExponentialHistogram": (
        "1 data_points ExponentialHistogramDataPoint; 2 aggregation_temporality "
        "AggregationTemporality"
    ),
    "ExponentialHistogramDataPoint": (
        "1 attributes KeyValue; 2 start_time_unix_nano fixed64; 3 time_unix_nano fixed64; 4 count "
        "fixed64; 5 sum double; 6 scale sint32; 7 zero_count fixed64; 8 positive Buckets; 9 negative "
        "Buckets; 10 flags uint32; 11 exemplars Exemplar; 12 min double; 13 max double; 14 "
        "zero_threshold double"
    ),
    "Buckets": "1 offset sint32; 2 bucket_counts uint64",
    "Summary": "1 data_points SummaryDataPoint",
    "SummaryDataPoint": (
        "2 start_time_unix_nano fixed64; 3 time_unix_nano fixed64; 4 count fixed64; 5 sum double; 6 "
        "quantile_values ValueAtQuantile; 7 attributes KeyValue; 8 flags uint32"
    ),
    "ValueAtQuantile": "1 quantile double; 2 value double",
}  # fmt: skip
"""By name, the fields of a message: number, name, type."""


@dataclass(frozen=True, slots=True)
class EnumName:
    """A value of an enum."""

    name: str


@dataclass(frozen=True)
class EnumSchema:
    """An enum whose values count from 0."""

    names: tuple[str, ...]

    @cached_property
    def values_by_number(self) -> dict[int, EnumName]:
        return {number: EnumName(name) for number, name in enumerate(self.names)}


@dataclass(frozen=True)
class MetricField:
    """A field. `kind` is a scalar, a message or an enum."""

    name: str
    kind: str

    @property
    def type(self) -> int:
        return _SCALARS.get(self.kind, _ENUM if self.kind in _ENUMS else _MESSAGE)

    @property
    def message_type(self) -> "MetricMessage | None":
        return MetricMessage(self.kind) if self.kind in _MESSAGES else None

    @property
    def enum_type(self) -> EnumSchema | None:
        return EnumSchema(_ENUMS[self.kind]) if self.kind in _ENUMS else None


@dataclass(frozen=True)
class MetricMessage:
    """A message, by its name."""

    name: str

    @property
    def fields_by_number(self) -> dict[int, MetricField]:
        return _fields(self.name)


@cache
def _fields(message: str) -> dict[int, MetricField]:
    lines = (line.split() for line in _MESSAGES[message].split("; "))
    return {int(number): MetricField(name, kind) for number, name, kind in lines}

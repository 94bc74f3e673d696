"""Client metrics (KIP-714): OpenTelemetry's `MetricsData`, mostly compressed, as items of a subtree.

It is in protocol buffers (protobuf.dev, "Encoding"): a tag is a varint of field number and wire type. Google's library
parses such messages but does not give the positions of their fields. Their names are those of OpenTelemetry's
specification (OTLP 1, metrics.proto), in a table: so the program needs neither library. A test holds the table equal to
the library's descriptors.
"""

import struct
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from dissector.protocol.embedded.subtree import Subtree, SubtreeItem
from dissector.protocol.records.compression import DecompressionBudget, DecompressionError, TooLargeError
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.wire import LimitError, WireError, uvarlong

NAME: Final = "MetricsData"
_VARINT, _I64, _LEN, _I32 = 0, 1, 2, 5
_DEEPEST: Final = 32
_FIXED: Final = {"double": "<d", "fixed64": "<Q", "sfixed64": "<q"}
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


class MetricField(NamedTuple):
    """A field of a message. `kind` is a scalar, a message or an enum, by name."""

    name: str
    kind: str

    @property
    def is_message(self) -> bool:
        return self.kind in _MESSAGES

    @property
    def enum(self) -> tuple[str, ...]:
        """The names of its values, which count from 0; empty if it is no enum."""
        return _ENUMS.get(self.kind, ())


@cache
def metric_fields(message: str) -> dict[int, MetricField]:
    """Return the fields of a message by number."""
    lines = (line.split() for line in _MESSAGES[message].split("; "))
    return {int(number): MetricField(name, kind) for number, name, kind in lines}


def metrics(raw: bytes, codec: int) -> Subtree | None:
    """Return the metrics that a client pushed; None if they can't be read. Raises `LimitError` where they exceed the
    budget of a frame."""
    try:
        budget = frame_budget()
        plain = budget.decompressed(codec, raw)
        budget.admit(0, len(raw))
        return Subtree(NAME, tuple(_items(plain, NAME, budget, 0, len(plain), 0)), plain if codec else None, codec)
    except TooLargeError as error:
        raise LimitError(str(error), 0) from None
    except LimitError:
        raise
    except (DecompressionError, WireError):
        return None


def _items(
    data: bytes, message: str, budget: DecompressionBudget, at: int, end: int, depth: int
) -> Iterator[SubtreeItem]:
    """Yield the fields of a message in wire order; they tile it. Raises `WireError`, also past the budget."""
    if depth > _DEEPEST:
        raise WireError("messages nested too deep", at)
    while at < end:
        tag, content = _unsigned(data, at, end)
        field = metric_fields(message).get(tag >> 3) or MetricField(f"field_{tag >> 3}", "?")
        budget.admit_parts(1, at, "fields of metrics")
        if tag & 7 == _LEN:
            item = _sized(data, field, at, content, end, depth, budget)
        else:
            item = _number(data, field, tag & 7, at, content, end)
        yield item
        at = item.end


def _number(data: bytes, field: MetricField, wire: int, start: int, at: int, stop: int) -> SubtreeItem:
    name, kind = field
    if wire == _VARINT:
        value, end = _unsigned(data, at, stop)
        note = field.enum[value] if value < len(field.enum) else ""
        return SubtreeItem(name, _shown(field), start, end, _of_varint(kind, value), note)
    if wire not in (_I64, _I32):
        raise WireError(f"wire type {wire} of {name} is not known", start)
    size, plain = (8, "<Q") if wire == _I64 else (4, "<I")
    end = _within(at + size, stop, at)
    layout = _FIXED.get(kind, plain) if wire == _I64 else plain
    return SubtreeItem(name, _shown(field), start, end, struct.unpack_from(layout, data, at)[0])


def _of_varint(kind: str, value: int) -> object:
    if kind == "sint32":
        return (value >> 1) ^ -(value & 1)
    if kind in ("int32", "int64") and value >= 1 << 63:
        return value - (1 << 64)
    return bool(value) if kind == "bool" else value


def _sized(
    data: bytes, field: MetricField, start: int, at: int, stop: int, depth: int, budget: DecompressionBudget
) -> SubtreeItem:
    """Read a message, a text, bytes or packed numbers behind their size."""
    name, kind = field
    size, at = _unsigned(data, at, stop)
    end = _within(at + size, stop, at)
    if field.is_message:
        items = tuple(_items(data, kind, budget, at, end, depth + 1))
        return SubtreeItem(name, "MESSAGE", start, end, None if items else {}, items=items)
    raw = data[at:end]
    value: object = raw.decode("utf-8", "surrogateescape") if kind == "string" else raw
    if kind in _FIXED and len(raw) % 8 == 0:
        value = [number for (number,) in struct.iter_unpack(_FIXED[kind], raw)]
    return SubtreeItem(name, _shown(field), start, end, value)


def _shown(field: MetricField) -> str:
    """The type of a field in a tree."""
    return "MESSAGE" if field.is_message else "ENUM" if field.enum else field.kind.upper()


def _unsigned(data: bytes, at: int, stop: int) -> tuple[int, int]:
    """Read a varint of up to 64 bits."""
    value, end = uvarlong(data, at)
    return value, _within(end, stop, at)


def _within(end: int, stop: int, at: int) -> int:
    if end > stop:
        raise WireError("runs past its message", at)
    return end

"""Client metrics: made by OpenTelemetry's own library, found again with every field's bytes."""

import json
import math
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from dissector.core.json_text import dumps
from dissector.protocol.codec.writer import write
from dissector.protocol.embedded.telemetry import MetricField, metric_fields
from dissector.protocol.message import trace
from dissector.protocol.message_layout import MessageLayout
from dissector.protocol.records.compression import CODECS
from tests.cases import cases
from tests.protocol.embedded.test_formats import looked_at
from tests.protocol.trees import assert_tiled


def made() -> MetricsData:
    data = MetricsData()
    metrics = data.resource_metrics.add()
    label = metrics.resource.attributes.add()
    label.key, label.value.string_value = "client_rack", "b"
    for name in ("producer.connection.creation.rate", "producer.connection.creation.total"):
        metric = metrics.scope_metrics.add().metrics.add()
        metric.name = name
        point = metric.sum.data_points.add()
        point.as_double, point.time_unix_nano, point.start_time_unix_nano = 1.5, 1_795_000_000_000_000_000, 7
        metric.sum.is_monotonic, metric.sum.aggregation_temporality = True, 1
        histogram = metrics.scope_metrics[-1].metrics.add().histogram.data_points.add()
        histogram.bucket_counts.extend([1, 2, 300])
        histogram.explicit_bounds.extend([0.5, 2.5])
    return data


@cases("codec", CODECS)
def test_metrics_in_every_codec(codec: int) -> None:
    raw = CODECS[codec].compress(made().SerializeToString())
    values = {"compression_type": codec, "metrics": raw}
    decoded, tree = looked_at("PushTelemetryRequest", 0, values)
    resource = decoded["metrics_decoded"]["resource_metrics"]
    assert resource["resource"]["attributes"] == {"key": "client_rack", "value": {"string_value": "b"}}
    first, second = resource["scope_metrics"][0]["metrics"]
    assert first["name"] == "producer.connection.creation.rate"
    assert first["sum"]["data_points"]["as_double"] == 1.5
    assert first["sum"]["is_monotonic"] is True
    assert second["histogram"]["data_points"]["bucket_counts"] == [1, 2, 300]
    node = next(each for each in tree.tree.walk() if each.name == "aggregation_temporality")
    assert node.note == "AGGREGATION_TEMPORALITY_DELTA"
    name = next(each for each in tree.tree.walk() if each.name == "name" and each.value == first["name"])
    assert tree.sources[name.source].data[name.start + 2 : name.end].decode() == first["name"]


@given(seed=st.integers(0, 9999), flips=st.integers(1, 4))
def test_damaged_metrics_are_survived_and_tile(seed: int, flips: int) -> None:
    chance = random.Random(seed)
    raw = bytearray(made().SerializeToString())
    for _ in range(flips):
        raw[chance.randrange(len(raw))] = chance.randrange(256)
    body = write("PushTelemetryRequest", 0, {"metrics": bytes(raw[: chance.randrange(len(raw) + 1)])})
    assert_tiled(trace(bytes(4) + bytes(4) + body, MessageLayout("ResponseHeader", 0, "PushTelemetryRequest", 0)))


def test_a_metric_that_is_no_number_is_text_in_json() -> None:
    data = made()
    data.resource_metrics[0].scope_metrics[0].metrics[0].sum.data_points[0].as_double = math.nan
    decoded, _ = looked_at("PushTelemetryRequest", 0, {"metrics": data.SerializeToString()})
    metric = json.loads(dumps(decoded))["metrics_decoded"]["resource_metrics"]["scope_metrics"][0]["metrics"][0]
    assert metric["sum"]["data_points"]["as_double"] == "nan"


def test_the_table_of_fields_is_that_of_the_library() -> None:
    def compared(message: str, theirs: Any, seen: set[str]) -> None:
        if theirs.full_name in seen:
            return
        seen.add(theirs.full_name)
        fields = metric_fields(message)
        assert {*fields} == {*theirs.fields_by_number}
        for each in theirs.fields:
            assert fields[each.number] == MetricField(each.name, kind_of(each))
            if each.message_type is not None:
                compared(each.message_type.name, each.message_type, seen)
            if each.enum_type is not None:
                assert dict(enumerate(fields[each.number].enum)) == {
                    value.number: value.name for value in each.enum_type.values
                }

    seen: set[str] = set()
    compared("MetricsData", MetricsData.DESCRIPTOR, seen)
    assert len(seen) > 15


def kind_of(field: Any) -> str:
    """The type of a field as metrics.proto has it."""
    described = field.message_type or field.enum_type
    scalars = {getattr(field, name): name.removeprefix("TYPE_").lower() for name in dir(field) if "TYPE_" in name[:5]}
    return described.name if described is not None else scalars[field.type]

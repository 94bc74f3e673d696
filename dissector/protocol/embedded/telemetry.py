"""Client metrics (KIP-714): OpenTelemetry's `MetricsData`, mostly compressed, named by a table of its fields."""

from dissector.protocol.embedded.protobuf import message_items
from dissector.protocol.embedded.subtree import Subtree
from dissector.protocol.records.compression import DecompressionError, TooLargeError
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.wire import LimitError, WireError

NAME = "MetricsData"


def metrics(raw: bytes, codec: int) -> Subtree | None:
    """Return the metrics that a client pushed; None if they can't be read. Raises `LimitError` where they exceed the
    budget of a frame."""
    from dissector.protocol.embedded.metrics_schema import MetricMessage  # few captures have metrics

    try:
        budget = frame_budget()
        plain = budget.decompressed(codec, raw)
        budget.admit(0, len(raw))
        return Subtree(NAME, tuple(message_items(plain, MetricMessage(NAME), budget)), plain if codec else None, codec)
    except TooLargeError as error:
        raise LimitError(str(error), 0) from None
    except LimitError:
        raise
    except (DecompressionError, WireError):
        return None

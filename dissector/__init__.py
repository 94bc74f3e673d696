"""kafka-dissector: see what Apache Kafka clients and brokers say to each other, every field tied to its bytes.

    import dissector

    with dissector.open("orders.pcapng") as capture:
        for exchange in capture.exchanges("api == Fetch && latency > 50ms"):
            print(exchange.number, exchange["max_wait_ms"], exchange["topic"])

The names below are the only ones that other programs may rely on.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dissector.api import (
        Capture,
        CaptureError,
        Connection,
        Diff,
        EncodeError,
        Exchange,
        Field,
        FilterError,
        Finding,
        Live,
        Message,
        Packet,
        Record,
        WireError,
        decode_request,
        decode_response,
        diff,
        encode,
        encode_request,
        encode_response,
        live,
        open,  # noqa: A004  # the promised name
        primitives,
        table_views,
    )

__all__ = [
    "Capture",
    "CaptureError",
    "Connection",
    "Diff",
    "EncodeError",
    "Exchange",
    "Field",
    "FilterError",
    "Finding",
    "Live",
    "Message",
    "Packet",
    "Record",
    "WireError",
    "decode_request",
    "decode_response",
    "diff",
    "encode",
    "encode_request",
    "encode_response",
    "live",
    "open",
    "primitives",
    "table_views",
]


def __getattr__(name: str) -> object:
    """Load the engine when it is first used, so that `kdissect --help` is quick."""
    if name in __all__:
        from dissector import api

        return getattr(api, name)
    raise AttributeError(f"module 'dissector' has no attribute {name!r}")

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
        Capture as Capture,
    )
    from dissector.api import (
        CaptureError as CaptureError,
    )
    from dissector.api import (
        Connection as Connection,
    )
    from dissector.api import (
        Diff as Diff,
    )
    from dissector.api import (
        EncodeError as EncodeError,
    )
    from dissector.api import (
        Exchange as Exchange,
    )
    from dissector.api import (
        Field as Field,
    )
    from dissector.api import (
        FilterError as FilterError,
    )
    from dissector.api import (
        Finding as Finding,
    )
    from dissector.api import (
        Live as Live,
    )
    from dissector.api import (
        Message as Message,
    )
    from dissector.api import (
        Packet as Packet,
    )
    from dissector.api import (
        Record as Record,
    )
    from dissector.api import (
        WireError as WireError,
    )
    from dissector.api import (
        decode_request as decode_request,
    )
    from dissector.api import (
        decode_response as decode_response,
    )
    from dissector.api import (
        diff as diff,
    )
    from dissector.api import (
        encode as encode,
    )
    from dissector.api import (
        encode_request as encode_request,
    )
    from dissector.api import (
        encode_response as encode_response,
    )
    from dissector.api import (
        live as live,
    )
    from dissector.api import open as open  # noqa: A004  # the promised name
    from dissector.api import (
        primitives as primitives,
    )
    from dissector.api import (
        table_views as table_views,
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

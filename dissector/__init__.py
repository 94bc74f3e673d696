"""kafka-dissector: see what Apache Kafka clients and brokers say to each other, every field tied to its bytes.

    import dissector

    with dissector.open("orders.pcapng") as capture:
        for exchange in capture.exchanges("api == Fetch && latency > 50ms"):
            print(exchange.row.api, exchange.request.body)

The names below are the only ones that other programs may rely on.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dissector.api import (
        EncodeError,
        FilterError,
        WireError,
        decode_request,
        decode_response,
        encode,
        encode_request,
        encode_response,
        primitives,
    )
    from dissector.api import open as open  # noqa: A004  # the promised name

__all__ = [
    "EncodeError",
    "FilterError",
    "WireError",
    "decode_request",
    "decode_response",
    "encode",
    "encode_request",
    "encode_response",
    "open",
    "primitives",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Load the engine when it is first used, so that `kdissect --help` is quick."""
    if name in __all__:
        from dissector import api

        return getattr(api, name)
    raise AttributeError(f"module 'dissector' has no attribute {name!r}")

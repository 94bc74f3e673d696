"""The Python API: what `import dissector` offers.

Invariant: pyarrow, pandas, polars, dpkt and scapy are imported only by what needs them.
"""

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

from typing import TYPE_CHECKING

from dissector.api.capture import Capture, Connection
from dissector.api.exchange import Exchange, Packet
from dissector.api.messages import decode_request, decode_response, encode, encode_request, encode_response
from dissector.api.opening import open  # noqa: A004  # the promised name
from dissector.capture.errors import CaptureError
from dissector.core.finding import Finding
from dissector.exchange.model import ExchangeMessage as Message
from dissector.protocol import primitives
from dissector.protocol.tree import Node as Field
from dissector.protocol.wire import EncodeError, WireError

if TYPE_CHECKING:
    from dissector.api.comparing import Diff, diff
    from dissector.api.live_traffic import Live, live
    from dissector.api.records import Record
    from dissector.api.tables import table_views
    from dissector.filter.errors import FilterError

_LATER = {
    "Diff": "dissector.api.comparing",
    "FilterError": "dissector.filter.errors",
    "Record": "dissector.api.records",
    "Live": "dissector.api.live_traffic",
    "diff": "dissector.api.comparing",
    "live": "dissector.api.live_traffic",
    "table_views": "dissector.api.tables",
}
"""Names that not all programs need, by their modules."""


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)

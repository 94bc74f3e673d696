"""kafka-dissector: see what Apache Kafka clients and brokers say to each other, every field tied to its bytes.

    import dissector

    with dissector.open("orders.pcapng") as capture:
        for exchange in capture.exchanges("api == Fetch && latency > 50ms"):
            print(exchange.number, exchange["max_wait_ms"], exchange["topic"])

The names below are the only ones that other programs may rely on.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dissector.analysis.conformance import CheckResult
    from dissector.analysis.outcomes import RuleOutcome
    from dissector.api.capture import Capture, Connection
    from dissector.api.comparing import Diff, diff
    from dissector.api.exchange import Exchange, Packet
    from dissector.api.faults import Fault
    from dissector.api.live_traffic import Live, live, proxy
    from dissector.api.messages import decode_request, decode_response, encode, encode_request, encode_response
    from dissector.api.opening import open  # noqa: A004  # the promised name
    from dissector.api.records import Record
    from dissector.api.serving import Served, serve
    from dissector.api.tables import table_views
    from dissector.capture.errors import CaptureError
    from dissector.core.finding import Finding, Severity
    from dissector.exchange.model import ExchangeMessage as Message
    from dissector.filter.errors import FilterError
    from dissector.protocol import primitives
    from dissector.protocol.tree import Node as Field
    from dissector.protocol.wire import EncodeError, WireError
    from dissector.proxy_server.faults.errors import FaultError
    from dissector.pytest_plugin import KafkaCapture, KafkaProxy
    from dissector.pytest_plugin.wire import Wire

    __version__: str

__all__ = [
    "Capture",
    "CaptureError",
    "CheckResult",
    "Connection",
    "Diff",
    "EncodeError",
    "Exchange",
    "Fault",
    "FaultError",
    "Field",
    "FilterError",
    "Finding",
    "KafkaCapture",
    "KafkaProxy",
    "Live",
    "Message",
    "Packet",
    "Record",
    "RuleOutcome",
    "Served",
    "Severity",
    "Wire",
    "WireError",
    "__version__",
    "decode_request",
    "decode_response",
    "diff",
    "encode",
    "encode_request",
    "encode_response",
    "live",
    "open",
    "primitives",
    "proxy",
    "serve",
    "table_views",
]

_HOMES: Final = {
    "api.capture": ("Capture", "Connection"), "api.comparing": ("Diff", "diff"), "api.exchange": ("Exchange", "Packet"),
    "api.live_traffic": ("Live", "live", "proxy"), "api.opening": ("open",), "api.records": ("Record",),
    "api.messages": ("decode_request", "decode_response", "encode", "encode_request", "encode_response"),
    "api.serving": ("Served", "serve"),
    "api.tables": ("table_views",), "capture.errors": ("CaptureError",), "core.finding": ("Finding", "Severity"),
    "analysis.conformance": ("CheckResult",), "analysis.outcomes": ("RuleOutcome",),
    "api.faults": ("Fault",), "proxy_server.faults.errors": ("FaultError",),
    "pytest_plugin": ("KafkaCapture", "KafkaProxy"), "pytest_plugin.wire": ("Wire",),
    "filter.errors": ("FilterError",), "protocol.wire": ("EncodeError", "WireError"),
    "exchange.model": ("Message",), "protocol.tree": ("Field",),
}  # fmt: skip
"""The names by the modules that are loaded for them."""
_OWN_NAMES: Final = {"Message": "ExchangeMessage", "Field": "Node"}


def __getattr__(name: str) -> object:
    """Load of the engine what a name needs when it is first used, so that `kdissect --help` is quick."""
    from importlib import import_module

    if name == "primitives":
        return import_module("dissector.protocol.primitives")
    if name == "__version__":
        return str(import_module("dissector.core.version").version("kafka-dissector"))
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"dissector.{home}"), _OWN_NAMES.get(name, name))
    raise AttributeError(f"module 'dissector' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names that there are, loaded or not: Python suggests the nearest for one that there is not."""
    return sorted({*globals(), *__all__})

"""The nodes of a graph of objects, and the names of classes and functions in it.

A checkpoint may name the functions and methods that stages hold to call them later, and no others. A stage that holds
another one is refused where its checkpoint is written, by the tests of all captures (`GraphError`).
"""

from collections.abc import Iterable
from functools import _lru_cache_wrapper
from importlib import import_module
from types import FunctionType
from typing import Any, Final, NamedTuple

import numpy as np

ENGINE: Final = frozenset(
    (
        "bulk",
        "core",
        "detection",
        "exchange",
        "findings",
        "framing",
        "groups",
        "index",
        "protocol",
        "records",
        "tls",
        "transport",
    )
)
"""Packages whose functions may be named."""
STATES: Final = ENGINE | {"capture", "capture_session", "pipeline"}
"""Packages whose classes may be named."""
EFFECTS: Final = (
    "dissector.capture.live",
    "dissector.protocol.kernel.build",
    "dissector.protocol.schema.importer",
    "dissector.records.values.schema_registry",
)
"""Modules and packages of these that start programs, write files or ask servers: no state has anything of them."""
BUILT_IN: Final[dict[str, type]] = {
    each.__name__: each for each in (bool, int, float, str, bytes, list, tuple, dict, set)
}
PLAIN_DTYPES: Final = "biufSUV"
"""Kinds of dtypes without objects."""
_FUNCTIONS: Final = frozenset((
    "dissector.findings.framework.decoded_exchange:request_body",
    "dissector.findings.framework.decoded_exchange:response_body",
    "dissector.groups.history:never_closed",
    "dissector.index.version_exchanges:_decoded_software",
    "dissector.index.version_exchanges:_decoded_versions",
))  # fmt: skip
_METHODS: Final = frozenset((
    "dissector.detection.kafka_detector:KafkaDetector._find_choice",
    "dissector.detection.kafka_detector:KafkaDetector._is_of_transcript",
    "dissector.exchange.decoder:ExchangeDecoder._facts",
    "dissector.exchange.decoder:ExchangeDecoder._is_opened",
    "dissector.exchange.connection_facts:EndpointNames._of",
    "dissector.exchange.connection_facts:EndpointNames.server",
    "dissector.exchange.connection_facts:EndpointNames.servers",
    "dissector.exchange.decoder:ExchangeDecoder._read_around",
    "dissector.exchange.orphan_decoder:OrphanDecoder._requests_of",
    "dissector.exchange.response_inference:ResponseInference._count_everywhere",
    "dissector.exchange.response_inference:ResponseInference._find_last_doubt",
    "dissector.exchange.response_inference:ResponseInference._gather",
    "dissector.exchange.response_inference:ResponseInference._gather_first_orphans",
    "dissector.exchange.response_inference:ResponseInference._gather_usual_layouts",
    "dissector.findings.framework.aggregation:ImmediateAggregation.add",
    "dissector.findings.framework.aggregation:ObservationLog.add",
    "dissector.findings.framework.capture_context:CaptureContext._client",
    "dissector.findings.framework.capture_context:CaptureContext.columns",
    "dissector.findings.framework.capture_context:CaptureContext.topic",
    "dissector.framing.framer:Framer.ignored",
    "dissector.index.conversation_state:ConversationState.known_names",
    "dissector.index.frame_table:FrameTable.read",
    "dissector.index.indexer:Indexer._is_whole",
    "dissector.index.pairing:Pairing.outstanding",
    "dissector.tls.stage:TlsStage.session",
    "dissector.transport.connection_table:ConnectionTable.first_packet",
    "dissector.transport.connection_table:ConnectionTable.ports",
))  # fmt: skip
_DETECTORS: Final = "dissector.findings.detectors."
_EXAMINE: Final = "examine_exchange"
"""The method of a detector that waits for its turn."""
_FACTORIES: Final = ("dissector.findings.",)
"""Packages whose classes make missing values."""


class GraphError(ValueError):
    """Nodes that are no graph of objects."""


class Nodes(NamedTuple):
    """The columns, `(n,)` each."""

    kind: list[str]
    name: list[str | None]
    number: list[int | None]
    data: list[bytes | None]
    items: list[list[int]]


class GraphNode(NamedTuple):
    """One row. Its items are objects where it is written, and rows where it is read."""

    kind: str
    name: str | None = None
    number: int | None = None
    data: bytes | None = None
    items: Iterable[Any] = ()


def name_of(value: Any) -> str:
    """Return the name of a class or function. Raises `GraphError` for one that `class_named` would not find."""
    built_in = str(value.__name__)
    if BUILT_IN.get(built_in) is value:
        return built_in
    name = f"{value.__module__}:{value.__qualname__}"
    if _found(name, STATES if isinstance(value, type) else ENGINE) is not value:
        raise GraphError(f"{name} has no name")
    return name


def class_named(name: str | None) -> type:
    """Return the class with a name. Raises `GraphError`."""
    found = BUILT_IN.get(name or "") or _found(name or "", STATES)
    if not isinstance(found, type):
        raise GraphError(f"{name} is no class")
    return found


def function_named(name: str | None) -> FunctionType:
    """Return the function with a name: of one with a cache, what is behind it. Raises `GraphError`."""
    found = _found(name or "", ENGINE)
    if not isinstance(found, FunctionType):
        raise GraphError(f"{name} is no function")
    return found


def plain_dtype(name: str | None) -> np.dtype[Any]:
    """Return the dtype with a name, if it has no objects. Raises `GraphError`."""
    dtype = np.dtype(name or "O")
    if dtype.kind not in PLAIN_DTYPES:
        raise GraphError(f"{name} is no dtype of plain values")
    return dtype


def dtype_name(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype. Raises `GraphError` for one with objects or fields."""
    if dtype.names is not None or plain_dtype(dtype.str) != dtype:
        raise GraphError(f"{dtype} is no dtype of plain values")
    return dtype.str


def _found(name: str, packages: frozenset[str]) -> Any:
    module, _, path = name.partition(":")
    package = module.split(".")
    if package[0] != "dissector" or len(package) < 2 or package[1] not in packages:
        raise GraphError(f"{name} is not of the engine")
    if any(module == each or module.startswith(f"{each}.") for each in EFFECTS):
        raise GraphError(f"{name} has effects")
    found: Any = import_module(module)
    for part in path.split("."):
        found = vars(found).get(part)
    found = found.__wrapped__ if isinstance(found, _lru_cache_wrapper) else found
    if getattr(found, "__module__", None) != module:
        raise GraphError(f"{name} is not of the engine")
    return found


def check_function(name: str | None) -> None:
    """Raise `GraphError` for a function that no stage holds."""
    if name not in _FUNCTIONS:
        raise GraphError(f"{name} is no function that is kept")


def check_method(owner: type, name: str) -> None:
    """Raise `GraphError` for a method that no stage holds."""
    kind = name_of(owner)
    if f"{kind}.{name}" not in _METHODS and not (kind.startswith(_DETECTORS) and name == _EXAMINE):
        raise GraphError(f"{kind}.{name} is no method that is kept")


def check_class(name: str | None) -> None:
    """Raise `GraphError` for a class that makes no missing values."""
    if ":" in (name or "") and not (name or "").startswith(_FACTORIES):
        raise GraphError(f"{name} is no class that is kept")

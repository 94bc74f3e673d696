"""Functions and methods that a checkpoint may name: those that stages hold to call them later, and no others.

A stage that holds another one is refused where its checkpoint is written, by the tests of all captures (`GraphError`).
"""

from typing import Final

from dissector.core.object_graph.nodes import GraphError, name_of

_FUNCTIONS: Final = frozenset((
    "dissector.findings.framework.decoded_exchange:request_body",
    "dissector.findings.framework.decoded_exchange:response_body",
    "dissector.groups.history:never_closed",
    "dissector.index.conversation_state:_decoded_software",
    "dissector.index.conversation_state:_decoded_versions",
))  # fmt: skip
_METHODS: Final = frozenset((
    "dissector.detection.kafka_detector:KafkaDetector._find_choice",
    "dissector.detection.kafka_detector:KafkaDetector._is_of_transcript",
    "dissector.exchange.decoder:ExchangeDecoder._facts",
    "dissector.exchange.decoder:ExchangeDecoder._is_opened",
    "dissector.exchange.endpoint_names:EndpointNames._of",
    "dissector.exchange.endpoint_names:EndpointNames.server",
    "dissector.exchange.endpoint_names:EndpointNames.servers",
    "dissector.exchange.response_inference:ResponseInference._count_everywhere",
    "dissector.exchange.response_inference:ResponseInference._find_last_doubt",
    "dissector.exchange.response_inference:ResponseInference._gather",
    "dissector.exchange.response_inference:ResponseInference._gather_first_orphans",
    "dissector.exchange.response_inference:ResponseInference._gather_usual_layouts",
    "dissector.findings.framework.aggregation:ImmediateAggregation.add",
    "dissector.findings.framework.aggregation:ObservationLog.add",
    "dissector.findings.framework.examination:Examination._client",
    "dissector.findings.framework.examination:Examination._rows_of",
    "dissector.findings.framework.examination:Examination.topic",
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

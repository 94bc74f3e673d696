"""What a conversation has taught, for reading one message of it: empty for a message by itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class DecodingContext:
    """Filled by `index.conversation_state`; what is learned later applies to earlier messages."""

    topic_names: Mapping[str, str] = field(default_factory=dict)
    """By topic id, as Kafka prints a uuid."""
    group_protocols: Mapping[str, str] = field(default_factory=dict)
    """Protocol types by group id: ``consumer``, ``connect``."""
    nodes: Mapping[int, str] = field(default_factory=dict)
    """``host:port`` by node id."""
    members: Mapping[str, str] = field(default_factory=dict)
    """Client ids by member id."""
    producers: Mapping[int, str] = field(default_factory=dict)
    """Transactional ids by producer id."""
    enveloped: tuple[int, int] | None = None
    """API key and version of the request inside the envelope that a response answers."""
    mechanism: str | None = None
    """The SASL mechanism that the connection had agreed on by then."""


EMPTY_CONTEXT = DecodingContext()

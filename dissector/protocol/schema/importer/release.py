"""What the importer takes in: one release of Kafka, or of a fork of it."""

from dataclasses import dataclass

from dissector.protocol.schema.model import MessageSchema


@dataclass(frozen=True, slots=True)
class Release:
    """What one release of Kafka has: its messages by name."""

    label: str
    messages: dict[str, MessageSchema]

"""The input of the importer: one release of Kafka, or of a fork of it."""

from dataclasses import dataclass

from dissector.protocol.schema.model import MessageSchema


@dataclass(frozen=True, slots=True)
class Release:
    """The messages of a release by name."""

    label: str
    messages: dict[str, MessageSchema]

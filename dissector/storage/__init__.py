"""Kafka's own files as inputs: log segments and snapshots, their indexes. Told by content, shown a row an entry."""

from dissector.storage.files import KafkaFiles

__all__ = ["KafkaFiles"]

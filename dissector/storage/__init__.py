"""Kafka's own files as inputs: log segments, snapshots and indexes. Recognized by content; one row per entry."""

from dissector.storage.files import KafkaFiles

__all__ = ["KafkaFiles"]

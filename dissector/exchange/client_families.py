"""Families of clients: programs that share their code, and so the names of their settings."""

from fnmatch import fnmatchcase
from typing import Final

JAVA: Final = "Java"
LIBRDKAFKA: Final = "librdkafka"
KAFKA_PYTHON: Final = "kafka-python"
AIOKAFKA: Final = "aiokafka"
FRANZ_GO: Final = "franz-go"
SARAMA: Final = "sarama"
KAFKAJS: Final = "kafkajs"
KAFKA_GO: Final = "kafka-go"
RSKAFKA: Final = "rskafka"
PLATFORMATIC: Final = "platformatic"

FAMILIES: Final = (
    ("apache-kafka-java*", JAVA),
    ("librdkafka*", LIBRDKAFKA),
    ("confluent-kafka*", LIBRDKAFKA),
    ("rdkafka*", LIBRDKAFKA),
    ("kafka-python*", KAFKA_PYTHON),
    ("aiokafka*", AIOKAFKA),
    ("kgo*", FRANZ_GO),
    ("sarama*", SARAMA),
    ("kafkajs*", KAFKAJS),
    ("*(github.com/segmentio/kafka-go)", KAFKA_GO),
    ("rskafka*", RSKAFKA),
    ("platformatic-kafka*", PLATFORMATIC),
)
"""Families of clients, by a pattern of their name in ApiVersions or of their client id."""


def family(client: str) -> str | None:
    """Return the family of a client by its name, which may be the family's own; None for an unknown one."""
    lower = client.lower()
    return next((name for pattern, name in FAMILIES if lower == name.lower() or fnmatchcase(lower, pattern)), None)

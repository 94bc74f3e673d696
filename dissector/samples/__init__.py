"""Captures to try commands on, recorded from real clients and brokers: `kdissect samples` copies them.

In the source tree they are links to recordings of ``pcaps/``; a wheel has the files.
"""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
SAMPLES: Final = {
    "orders.pcapng": "a Java client creates a topic, produces 100 orders, and consumes them in a group",
    "rebalance.pcapng": "members of a group that start and stop one after the other",
    "errors.pcapng": "a producer that writes to a topic that does not exist",
    "mistake.pcapng": "a client that speaks TLS to a plaintext listener",
    "tls.pcapng": "a client over TLS 1.3, with a login; the file has the secrets, too",
    "java.pcapng": "a task done by Apache's Java client",
    "librdkafka.pcapng": "the same task done by librdkafka",
    "surplus.pcapng": "librdkafka with a Metadata request that is three bytes too long: check finds it",
    "records.pcapng": "records as serializers write them: JSON, Avro, Protobuf, Debezium",
    "schemas/7.avsc": "an Avro schema of these records, by its id",
    "schemas/8.proto": "a Protobuf schema, by its id",
    "schemas/shop.Line.avsc": "a type that the Avro schema names",
    "__consumer_offsets-0/00000000000000000000.log": "a segment of Kafka's topic of committed offsets",
}
"""What is in each file, by its path in the folder."""

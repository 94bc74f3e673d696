"""Names that Kafka's messages have for the same things, whatever the API: for readers that know no single message.

Invariant: a structure has one name of a topic at the most, its id beside it or alone, and one number of a partition.
"""

from typing import Final

TOPIC_ID: Final = "topic_id"
TOPIC_NAMES: Final = ("topic", "topic_name", "name")
"""The last one is that of other things, too."""
TOPIC_FIELDS: Final = (*TOPIC_NAMES, TOPIC_ID)
PARTITION_NUMBERS: Final = ("partition_index", "index", "partition", "partition_id")
ERROR_CODES: Final = frozenset(
    ("error_code", "partition_error_code", "topic_config_error_code", "acknowledge_error_code")
)

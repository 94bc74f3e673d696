"""What has to be remembered of a conversation, so that rules may ask for topics: names of topic ids, and the partitions
of a fetch session, which its requests no longer name.
"""

from collections.abc import Mapping
from typing import Final

from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.message import Values, read
from dissector.protocol.message_layout import response_layout
from dissector.protocol.schema.api_keys import ApiKey

TEACHING: Final = frozenset((ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_TOPIC_PARTITIONS))
"""APIs whose responses have names of topics beside their ids."""
MOST_NAMES: Final = 200_000
MOST_PARTITIONS: Final = 200_000
"""Of one session; of a larger one what a request names is all that is known."""


class TopicNames:
    """Names by ids, for all connections of a run."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self.context = DecodingContext(topic_names=self._names)

    def learn(self, key: int, version: int, frame: bytes) -> None:
        """Read the names in a response."""
        for topic in read(frame, response_layout(key, version, frame)).body.get("topics") or []:
            name, known = topic.get("name"), topic.get("topic_id")
            if name and known and len(self._names) < MOST_NAMES:
                self._names[known] = name


class FetchSession:
    """The fetch session of a connection: KIP-227. A client has one with each broker."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, str], dict[int, Values]] = {}
        """By the field that names a topic, and what it says."""

    def whole(self, body: Values) -> Values:
        """Return the body of a Fetch with all partitions that it asks for."""
        epoch = body.get("session_epoch", -1)
        if epoch < 0:
            self._partitions.clear()
            return body
        if epoch == 0:
            self._partitions.clear()
        for topic in body.get("topics") or []:
            partitions = self._partitions.setdefault(_named(topic), {})
            partitions |= {each["partition"]: each for each in topic.get("partitions") or []}
        for topic in body.get("forgotten_topics_data") or []:
            named = _named(topic)
            for number in topic.get("partitions") or []:
                self._partitions.get(named, {}).pop(number, None)
            if not self._partitions.get(named):
                self._partitions.pop(named, None)
        if sum(map(len, self._partitions.values())) > MOST_PARTITIONS:
            self._partitions.clear()
            return body
        if epoch == 0:
            return body
        topics = [
            {field: name, "partitions": [*partitions.values()]}
            for (field, name), partitions in self._partitions.items()
        ]
        return body | {"topics": topics}


def _named(topic: Mapping[str, object]) -> tuple[str, str]:
    field = "topic_id" if "topic_id" in topic else "topic"
    return field, str(topic.get(field))

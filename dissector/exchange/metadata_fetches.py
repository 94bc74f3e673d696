"""Which Fetch requests, and responses to them, are of the metadata log: its records have secrets, others have none."""

from collections.abc import Mapping
from typing import Final

from dissector.exchange.model import ExchangeMessage
from dissector.protocol.embedded.secrets import is_metadata_log, may_name_metadata_log, names_metadata_log
from dissector.protocol.embedded.topics import CLUSTER_METADATA, CLUSTER_METADATA_ID
from dissector.protocol.masked_reasons import is_of_end

_METADATA_LOG: Final = frozenset((CLUSTER_METADATA, CLUSTER_METADATA_ID))


def fetches_metadata(request: ExchangeMessage) -> bool:
    """Whether a Fetch request names the metadata log, or may have before it was damaged. In one that was read to its
    end, or to where it was cut, other bytes may look like the log's topic id: partition 0, leader epoch 0, offset 1."""
    if request.masked:
        return True
    if names_metadata_log(request.data):
        is_cut = request.size > len(request.data) and all(map(is_of_end, request.decoded.findings))
        is_read = request.layout.unread is None and (is_cut or not (request.findings or request.rest))
        topics = request.known_body.get("topics")
        return not is_read or (is_cut and not topics) or may_name_metadata_log(topics)
    return request.context.may_have_secrets and has_metadata_log(request.body.get("topics"))


def has_metadata_log(topics: object) -> bool:
    """Whether topics of a Fetch have the metadata log, or what damage made of it."""
    return isinstance(topics, list) and any(is_metadata_log(*_names(each)) for each in topics)


def has_damaged_metadata_log(topics: object) -> bool:
    """Whether topics of a Fetch have what damage made of the metadata log: its name is in no bytes then."""
    return isinstance(topics, list) and any(
        is_metadata_log(*_names(each)) and not _METADATA_LOG.intersection(_names(each)) for each in topics
    )


def _names(topic: Mapping[str, str]) -> tuple[str | None, str | None]:
    return topic.get("topic"), topic.get("topic_id")

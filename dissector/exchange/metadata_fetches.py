"""Which Fetch requests, and responses to them, are of the metadata log: its records have secrets, others have none."""

from dissector.exchange.model import ExchangeMessage
from dissector.protocol.embedded.secrets import is_metadata_log, may_name_metadata_log, names_metadata_log


def fetches_metadata(request: ExchangeMessage) -> bool:
    """Whether a Fetch request names the metadata log, or may have before it was damaged. In one that was read to its
    end, other bytes may look like the log's topic id: partition 0, leader epoch 0, offset 1."""
    if request.masked:
        return True
    if names_metadata_log(request.data):
        is_read = request.layout.unread is None and not (request.findings or request.rest)
        return not is_read or may_name_metadata_log(request.body.get("topics"))
    return request.context.may_have_secrets and has_metadata_log(request.body.get("topics"))


def may_fetch_metadata(request: ExchangeMessage) -> bool:
    """The same, whatever is known of the connection."""
    return fetches_metadata(request) or has_metadata_log(request.body.get("topics"))


def has_metadata_log(topics: object) -> bool:
    """Whether topics of a Fetch have the metadata log, or what damage made of it."""
    return isinstance(topics, list) and any(is_metadata_log(each.get("topic"), each.get("topic_id")) for each in topics)

"""Which Fetch requests, and responses to them, are of the metadata log: its records have secrets, others have none."""

from dissector.exchange.model import ExchangeMessage
from dissector.protocol.embedded.secrets import is_metadata_log, names_metadata_log


def fetches_metadata(request: ExchangeMessage) -> bool:
    """Whether a Fetch request names the metadata log, or may have before it was damaged."""
    if request.masked or names_metadata_log(request.data):
        return True
    return request.context.may_have_secrets and has_metadata_log(request.body.get("topics"))


def may_fetch_metadata(request: ExchangeMessage) -> bool:
    """The same, whatever is known of the connection."""
    return fetches_metadata(request) or has_metadata_log(request.body.get("topics"))


def has_metadata_log(topics: object) -> bool:
    """Whether topics of a Fetch have the metadata log, or what damage made of it."""
    return isinstance(topics, list) and any(is_metadata_log(each.get("topic"), each.get("topic_id")) for each in topics)

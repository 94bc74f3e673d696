"""What a request is about: topics, partitions, groups, keys, resources; and how it asks where that matters.

Names mean the same in all APIs (`proxy_server.faults.error_responses`), so that nothing is known here of most of them.
A topic that is named by its id counts as its name, where the recording has it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dissector.protocol.codec.writer import ZERO_UUID
from dissector.protocol.schema.api_keys import ApiKey
from dissector.proxy_server.faults.error_responses import meaning

Names = Mapping[str, str]
Identity = tuple[tuple[str, object], ...]
"""Names and values, from the outermost structure to the innermost."""
Entities = frozenset[Identity]

IDENTITY: Final = frozenset((
    "name", "index", "group_id", "key", "transactional_id", "resource_type", "resource_name", "key_type", "mechanism",
    "entity_type", "entity_name", "id", "feature",
))  # fmt: skip
"""What identifies an entity, by the names that stand for all of one meaning."""
AROUND: Final = frozenset(("group_id", "transactional_id"))
"""What some versions of an API have around topics, and others once for the whole request."""
_ERRORS: Final = frozenset(("error_code", "partition_error_code"))


def requested(key: int, body: Mapping[str, Any], topics: Names) -> Entities:
    """Return what a request is about."""
    found = set(_walk(body, (), topics))
    found |= {((name, value),) for name, value in _manner(key, body)}
    return frozenset(found)


def own_identity(values: Mapping[str, Any], topics: Names) -> Identity:
    """Return what identifies one structure among its siblings."""
    found: dict[str, object] = {}
    for name, value in values.items():
        if name == "topic_id":
            if isinstance(value, str) and value != ZERO_UUID:
                found["name"] = topics.get(value, value)
        elif (name_of_all := meaning(name)) in IDENTITY and isinstance(value, str | int) and value is not None:
            found.setdefault(name_of_all, value)
    return tuple(sorted(found.items()))


def _walk(values: Mapping[str, Any], around: Identity, topics: Names) -> Iterator[Identity]:
    own = own_identity(values, topics)
    here = without_around((*around, *own))
    if own:
        yield here or (*around, *own)
    for name, value in values.items():
        for each in value if isinstance(value, list) else ():
            if isinstance(each, Mapping):
                yield from _walk(each, (*around, *own), topics)
            elif isinstance(each, str | int) and meaning(name) in IDENTITY:
                yield (*without_around((*around, *own)), (meaning(name), each))


def without_around(identity: Identity) -> Identity:
    """Leave the group or transaction out that a topic or a partition belongs to."""
    inner = tuple(each for each in identity if each[0] not in AROUND)
    return inner or identity


def _manner(key: int, body: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield how a request asks: for the first or the last offset, as a new member or as one that leaves."""
    if key == ApiKey.JOIN_GROUP:
        yield "has a member id", bool(body.get("member_id"))
    epoch = body.get("member_epoch", body.get("share_session_epoch"))
    if isinstance(epoch, int):
        yield "epoch", max(-2, min(epoch, 1))
    if key == ApiKey.LIST_OFFSETS:
        for topic in body.get("topics") or ():
            for each in topic.get("partitions") or ():
                yield f"offset of {topic.get('name')}-{each.get('partition_index')}", min(0, each.get("timestamp", 0))
    if key == ApiKey.METADATA and "topics" in body:
        yield "topics", "all" if body["topics"] is None else "none" if not body["topics"] else "some"
    if key == ApiKey.END_TXN:
        yield "commits", body.get("committed")


def error_in(values: Any) -> bool:
    """Return whether a response has an error code, at any depth."""
    if isinstance(values, list):
        return any(map(error_in, values))
    if not isinstance(values, dict):
        return False
    return any((name in _ERRORS and value) or error_in(value) for name, value in values.items())

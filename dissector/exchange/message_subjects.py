"""What the messages of an exchange are about, whatever an API calls it: errors, topics, partitions, groups.

The schema tables say which fields these are: by Kafka's marks (`entityType`), by the enum of their numbers, and by
names that mean the same in every message. A new API needs nothing here.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final

from dissector.core.expansion import LISTED, MOST_LISTED, RUN, partitions
from dissector.core.identity_cache import IdentityCache
from dissector.exchange.field_paths import SIDES, STRUCT, FieldPlace, Path, found, places
from dissector.exchange.info_column import REASON
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.field_enums import CoordinatorType
from dissector.protocol.schema.field_names import TOPIC_ID

PARTITIONS: Final = frozenset(("partition", "partition_index", "partition_id", "partition_indexes"))
_KEY_TYPE: Final = "key_type"
_BODY: Final = "body"
_EXCHANGE: Final = "exchange"
"""The kind of rows with messages."""
_INTEGERS: Final = ("int8", "int16", "int32", "int64")


@dataclass(frozen=True)
class MessageSubject:
    """Fields of many messages under one name.

    `is_at` selects their places; `values` converts what stands there; `more` gives values of an incremental Fetch that
    no field of its messages has.
    """

    is_at: Callable[[FieldPlace], bool]
    values: Callable[[ExchangeMessage, Iterable[object]], Iterable[object]] | None = None
    more: Callable[[Exchange], Collection[object]] | None = None
    beside: str = ""
    """A field at the top of a message that `values` reads too."""

    @cached_property
    def places(self) -> tuple[FieldPlace, ...]:
        """The places of the fields, of both sides."""
        return tuple(
            place for side in SIDES for place in places(side)
            if place.api_key is not None and not place.opened and place.type != STRUCT and self.is_at(place)
        )  # fmt: skip

    @cached_property
    def paths(self) -> Mapping[str, tuple[Path, ...]]:
        """The paths of the fields, by message."""
        by_message: dict[str, list[Path]] = {}
        for place in self.places:
            by_message.setdefault(place.message, []).append(place.path)
        return {name: tuple(paths) for name, paths in by_message.items()}

    def reads(self, body: str) -> Collection[Path]:
        """The fields of a message on which its values depend, by their paths from ``body`` on."""
        paths = [(_BODY, *path) for path in self.paths.get(body, ())]
        return [*paths, (_BODY, self.beside)] if paths and self.beside else paths

    def of(self, exchange: Exchange) -> Iterable[object]:
        """The values of an exchange."""
        found, more = self.in_messages(exchange), self.of_session(exchange)
        return chain(found, more) if more else found

    def of_session(self, exchange: Exchange) -> Collection[object]:
        """Those of the session of an incremental Fetch that no field of its messages has: the same object as long as
        the session stays as it is. None once there is no room for more."""
        if self.more is None or exchange.fields.kind != _EXCHANGE or not exchange.has_session:
            return ()
        if not RUN.admits_session():  # before all partitions are listed
            return ()
        more = self.more(exchange)
        if more:
            RUN.take_session(more, LISTED * (len(more) + len(exchange.fetched or ())))  # topics may share few numbers
        return more

    def in_messages(self, exchange: Exchange) -> Iterator[object]:
        """The values in its messages."""
        for message in (exchange.request, exchange.response) if exchange.fields.kind == _EXCHANGE else ():
            if message is not None:
                yield from self.in_message(message)

    def in_message(self, message: ExchangeMessage) -> Iterable[object]:
        """The values of one message."""
        paths = self.paths.get(message.layout.body or "")
        if not paths:
            return ()
        values = [value for path in paths for value in found(message.body, path)]
        return values if self.values is None else self.values(message, values)


def _is_error(place: FieldPlace) -> bool:
    name = place.path[-1]
    return place.side == "response" and (name == "error_code" or name.endswith("_error_code"))


def _errors(message: ExchangeMessage, codes: Iterable[object]) -> Iterable[object]:
    """The errors of a response; `ErrorCode.NONE` for a decoded response without one."""
    errors = [code for code in codes if code]
    return errors or ([ErrorCode.NONE] if message.body else [])


def _is_topic(place: FieldPlace) -> bool:
    marked = place.field is not None and place.field.entity_type == "topicName"
    return marked or place.path[-1] in ("topic", "topic_name", TOPIC_ID)


def _topics(message: ExchangeMessage, values: Iterable[object]) -> Iterable[object]:
    """Names. A topic id comes with the name that the capture gives it, if any."""
    for value in values:
        yield value
        name = message.context.topic_names.get(str(value))
        if name is not None:
            yield name


def _is_partition(place: FieldPlace) -> bool:
    name = place.path[-1]
    if place.type not in _INTEGERS:
        return False
    return (
        name in PARTITIONS
        or (name == "partitions" and place.is_array)
        or (name == "index" and place.path[-2:-1] != () and place.path[-2].startswith("partition"))
    )


def _is_group(place: FieldPlace) -> bool:
    marked = place.field is not None and place.field.entity_type == "groupId"
    return marked or place.path[-1] == "group_id" or _is_coordinator_key(place)


def _is_coordinator_key(place: FieldPlace) -> bool:
    return place.message == "FindCoordinatorRequest" and place.path[-1] in ("key", "coordinator_keys")


def _groups(message: ExchangeMessage, values: Iterable[object]) -> Iterable[object]:
    """FindCoordinator names a group only with the key type of groups. Before version 1 all keys are groups."""
    return values if message.body.get(_KEY_TYPE, CoordinatorType.GROUP) == CoordinatorType.GROUP else ()


def _is_reason(place: FieldPlace) -> bool:
    return place.path[-1] == REASON and place.message in ("JoinGroupRequest", "LeaveGroupRequest")


def _reasons(_message: ExchangeMessage, values: Iterable[object]) -> Iterable[object]:
    """Members that say nothing have an empty reason."""
    return [value for value in values if value]


ERROR: Final = MessageSubject(_is_error, _errors)


class _SessionPartitions:
    """The partitions of fetch sessions, each number once; of a session that stays as it is one tuple."""

    def __init__(self) -> None:
        self._listed: IdentityCache[tuple[int, ...]] = IdentityCache(MOST_LISTED // LISTED)

    def __call__(self, exchange: Exchange) -> tuple[int, ...]:
        """Those of an exchange."""
        fetched = exchange.fetched or {}
        found = self._listed.get(fetched)
        if found is None:
            found = tuple(dict.fromkeys(chain.from_iterable(fetched.values())))
            self._listed.put(fetched, found, max(len(found), partitions(fetched) // LISTED))
        return found


TOPIC: Final = MessageSubject(_is_topic, _topics, lambda exchange: exchange.fetched or ())
PARTITION: Final = MessageSubject(_is_partition, more=_SessionPartitions())
GROUP: Final = MessageSubject(_is_group, _groups, beside=_KEY_TYPE)
REASON_OF_MEMBER: Final = MessageSubject(_is_reason, _reasons)

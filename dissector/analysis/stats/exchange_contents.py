"""What an exchange says about errors, topics and partitions, apart from the sizes of its records: the same for all
exchanges that are equal in the fields that `reads` names.

Records are referred to by their place: the how manieth `records` field of the message it is.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import count
from typing import Any, Final, NamedTuple

from dissector.analysis.stats.counts import TopicPartition
from dissector.analysis.stats.topic_mentions import topic_mentions, topic_structs
from dissector.exchange.field_paths import Path, found, replaced
from dissector.exchange.finding_words import ERROR_RESPONSE
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.index.fetch_sessions import is_incremental
from dissector.protocol.codec.program import ColumnPlan, Part
from dissector.protocol.codec.structs import structs_with
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.schema.field_names import ERROR_CODES
from dissector.protocol.schema.loader import api

Subject = str | TopicPartition
"""A topic or a partition."""
NO_SUBJECT: Final = -1
_BODY: Final = "body"


class ExchangeContents(NamedTuple):
    """What an exchange says."""

    codes: tuple[int, ...]
    """The error codes of its response, each once."""
    subjects: tuple[Subject, ...]
    """The topics and partitions that it mentions, each once; and not those that only its fetch session has."""
    has_error: tuple[bool, ...]
    """Of each of them."""
    sent: tuple[tuple[int, int], ...]
    """By place in the request, the topic and the partition of the records, as places in `subjects`; or `NO_SUBJECT`."""
    received: tuple[tuple[int, int], ...]
    """The same of the response."""
    continues_session: bool
    """Whether it is an incremental Fetch."""


def contents_of(exchange: Exchange) -> ExchangeContents:
    """What an exchange says."""
    subjects: dict[Subject, int] = {}
    errors: list[bool] = []

    def place_of(subject: Subject) -> int:
        place = subjects.setdefault(subject, len(subjects))
        if place == len(errors):
            errors.append(False)
        return place

    sides: list[tuple[tuple[int, int], ...]] = []
    for message in (exchange.request, exchange.response):
        records = [(NO_SUBJECT, NO_SUBJECT)] * (0 if message is None else len(_records_of(message)))
        for each in () if message is None else topic_mentions(message, _with_places(message)):
            of_topic, of_partition = place_of(each.topic), NO_SUBJECT
            errors[of_topic] |= bool(each.error)
            if each.partition is not None:
                of_partition = place_of(TopicPartition(each.topic, each.partition))
                errors[of_partition] |= bool(each.error)
            if each.records is not None:
                records[each.records] = of_topic, of_partition
        sides.append(tuple(records))
    continues = exchange.request is not None and is_incremental(exchange.request.body)
    return ExchangeContents(
        tuple(_error_codes(exchange)), tuple(subjects), tuple(errors), sides[0], sides[1], continues
    )


def session_subjects(fetched: Mapping[str, Iterable[int]]) -> Iterator[Subject]:
    """The topics and partitions of a fetch session."""
    for topic, numbers in fetched.items():
        yield topic
        for number in numbers:
            yield TopicPartition(topic, number)


def record_sizes(message: ExchangeMessage | None) -> list[int]:
    """The sizes of the records of a message, by place; in tables they are packed."""
    return [] if message is None else [_size(each) for each in _records_of(message)]


def _size(records: object) -> int:
    if isinstance(records, dict):
        return int(records["size"])
    return len(records) if isinstance(records, bytes) else 0


def record_bytes_by_topic(exchange: Exchange) -> dict[Subject, tuple[int, int, bool]]:
    """The bytes of records out and in, and whether there is an error, by each topic and partition that an exchange
    mentions or that its fetch session has."""
    contents = contents_of(exchange)
    found = dict.fromkeys(session_subjects(exchange.fetched or {}), (0, 0, False))
    sizes = [[0, 0] for _ in contents.subjects]
    for side, (message, records) in enumerate(
        ((exchange.request, contents.sent), (exchange.response, contents.received))
    ):
        for size, subjects in zip(record_sizes(message), records, strict=True):
            for subject in subjects:
                if subject != NO_SUBJECT:
                    sizes[subject][side] += size
    mentioned = zip(contents.subjects, sizes, contents.has_error, strict=True)
    return found | {subject: (out, back, error) for subject, (out, back), error in mentioned}


def reads(api_key: int, column: ColumnPlan, *, is_request: bool) -> bool:
    """Whether what an exchange says depends on a column of one of its messages."""
    if column.part is Part.UNKNOWN_TAGS:
        return False
    is_error = not is_request and column.path[0] == _BODY and column.name in ERROR_CODES
    return is_error or column.path in _subject_paths(api_key, is_request=is_request)


def has_records(api_key: int, column: ColumnPlan) -> bool:
    """Whether a column has the sizes of records."""
    return column.part is Part.VALUE and column.type == "records" and column.path in _records_paths(api_key)


@cache
def _subject_paths(api_key: int, *, is_request: bool) -> frozenset[Path]:
    """The paths of the fields that name topics and partitions, and of their errors, in any version."""
    known, found_paths = api(api_key), set[Path]()
    assert known is not None, "the layouts of plain messages are known"
    name = known.request if is_request else known.response
    for version in range(known.versions.low, known.versions.high + 1):
        for struct in topic_structs(name, version):
            above = (_BODY, *struct.path)
            found_paths |= {(*above, each) for each in (*struct.names, *struct.lists)}
            found_paths |= {(*above, each) for each in (struct.beside.number, struct.beside.error) if each}
            for part in struct.partitions:
                found_paths |= {(*above, part.field, each) for each in (part.number, part.error) if each}
                found_paths.add((*above, part.field))
    return frozenset(found_paths)


@cache
def _records_paths(api_key: int) -> frozenset[Path]:
    known = api(api_key)
    names = () if known is None else (known.request, known.response)
    return frozenset((_BODY, *RECORDS_FIELDS[name].split(".")) for name in names if name in RECORDS_FIELDS)


def _records_of(message: ExchangeMessage) -> list[object]:
    path = RECORDS_FIELDS.get(message.layout.body or "")
    return [] if path is None else found(message.body, path.split("."))


def _with_places(message: ExchangeMessage) -> Any:
    """The body, with places instead of records."""
    path = RECORDS_FIELDS.get(message.layout.body or "")
    places = count()
    return message.body if path is None else replaced(message.body, path.split("."), lambda _: next(places))


def _error_codes(exchange: Exchange) -> set[int]:
    """The distinct error codes of a response; the finding says whether it has any."""
    response = exchange.response
    if response is None or not any(each.code == ERROR_RESPONSE for each in exchange.row_findings):
        return set()
    structs = structs_with(response.layout, response.body, ERROR_CODES)
    return {code for struct in structs for name in ERROR_CODES if isinstance(code := struct.get(name), int) and code}

"""The info column: errors, topics, partitions, records and groups of an exchange, in a few words.

The tables below name the fields to show. These names mean the same in every API (``topics``, ``partitions``,
``group_id``, ``error_code``, …), so a new API needs nothing here. `exchange_info` puts the words together.
"""

from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from dissector.core.finding import Finding
from dissector.core.text import counted
from dissector.exchange.finding_words import ERROR_RESPONSE, error_names, marked, without_advice
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.structs import structs_with
from dissector.protocol.masked_reasons import MALFORMED, TRAILING, UNREAD
from dissector.protocol.message import Values
from dissector.protocol.records.counting import count_records
from dissector.protocol.schema.field_names import PARTITION_NUMBERS, TOPIC_FIELDS
from dissector.protocol.schema.loader import alternatives

TOPIC_ARRAYS: Final = ("topics", "topic_data", "responses", "topic_states", "results")
PARTITION_ARRAYS: Final = ("partitions", "partition_data", "partition_responses", "partition_indexes")
SUBJECTS: Final = ("group_id", "transactional_id", "key", "member_id", "mechanism", "client_software_name")
SUBJECT_ARRAYS: Final = ("groups", "coordinator_keys", "group_ids", "groups_names", "transactional_ids")
REASON: Final = "reason"
"""Why a member joins or leaves its group (KIP-800), at the top or of each of `REASON_ARRAY`."""
REASON_ARRAY: Final = "members"
RECORDS: Final = frozenset(("records",))
DAMAGE: Final = frozenset((MALFORMED, TRAILING))
"""Codes of findings of a message that does not fit its layout."""
READS_AS: Final = "reads-as"
"""The code of the finding that such a message fits another one."""
MAX_TOPICS: Final = 3


def first_error(exchange: Exchange) -> str:
    """Return the name of a response's first error, with how often it occurs; empty where there is none."""
    return next((without_advice(each) for each in exchange.row_findings if each.code == ERROR_RESPONSE), "")


class _TopFields(NamedTuple):
    """Those of the fields above that a message has at its top. Nearly all have few, and most are asked for each row."""

    subjects: tuple[str, ...]
    subject_arrays: tuple[str, ...]
    topic_arrays: tuple[str, ...]


@lru_cache(maxsize=4096)
def _top_fields(body: str | None, version: int) -> _TopFields:
    if body is None:
        return _TopFields((), (), ())
    if alternatives(body, version):
        return _TopFields(SUBJECTS, SUBJECT_ARRAYS, TOPIC_ARRAYS)
    layout = plan(body, version)
    names = {field.name for field in (*layout.fields, *layout.tagged)}
    shown = (tuple(name for name in some if name in names) for some in (SUBJECTS, SUBJECT_ARRAYS, TOPIC_ARRAYS))
    return _TopFields(*shown)


NamedTopic = tuple[str, str]
"""A topic by its name or its id, and its partitions in words."""


def _topics(message: ExchangeMessage | None) -> list[NamedTopic]:
    found: list[NamedTopic] = []
    if message is None:
        return found
    for name in _top_fields(message.layout.body, message.layout.body_version).topic_arrays:
        topics = message.body.get(name)
        for topic in topics if isinstance(topics, list) else []:
            if isinstance(topic, str):
                found.append((topic, ""))
            elif isinstance(topic, dict):
                words = _first(topic, TOPIC_FIELDS)
                if isinstance(words, str):
                    found.append((words, _partitions(topic)))
    return found


def _first(values: Values, names: Sequence[str]) -> object:
    """The first of these fields that is not empty. A generator would take twice as long."""
    for name in names:
        value = values.get(name)
        if value:
            return value
    return None


def _subjects(request: ExchangeMessage | None) -> list[str]:
    """What a request is about besides topics: a group, a transaction, a member; of several, the first."""
    if request is None:
        return []
    shown = _top_fields(request.layout.body, request.layout.body_version)
    subject, several = _first(request.body, shown.subjects), _first(request.body, shown.subject_arrays)
    if isinstance(subject, str):
        return [subject, *_reasons(request.body)]
    if not isinstance(several, list):
        return []
    first = several[0].get("group_id") if isinstance(several[0], dict) else several[0]
    more = f" +{len(several) - 1}" if len(several) > 1 else ""
    return [f"{first}{more}"] if isinstance(first, str) else []


def _reasons(body: Values) -> list[str]:
    """The reasons of members, each once."""
    members = body.get(REASON_ARRAY)
    several = [each.get(REASON) for each in members if isinstance(each, dict)] if isinstance(members, list) else []
    found = dict.fromkeys(each for each in (body.get(REASON), *several) if isinstance(each, str) and each)
    more = [f"+{len(found) - MAX_TOPICS} reasons"] if len(found) > MAX_TOPICS else []
    return [*list(found)[:MAX_TOPICS], *more]


def session_words(exchange: Exchange) -> str | None:
    """Return the partitions of the fetch session of an incremental Fetch, empty for none; None if they are not known,
    and for other requests."""
    found = exchange.first_fetched(MAX_TOPICS)
    return None if found is None else fetch_session_words(*found)


def fetch_session_words(fetched: Mapping[str, Sequence[int]], more: int = 0) -> str:
    """Return the partitions of a fetch session, for a Fetch that names none; so many topics are not among them. Of a
    topic's partitions, the first four and the last stand for all."""
    if not fetched:
        return ""
    more += max(0, len(fetched) - MAX_TOPICS)
    topics = (topic + _ranged(numbers) for topic, numbers in islice(fetched.items(), MAX_TOPICS))
    return "session " + " ".join(topics) + (f" +{more}" if more else "")


def _ranged(numbers: Sequence[int]) -> str:
    """Partition numbers in ascending order: ``[0..5]``, ``[1,4,7]``."""
    if len(numbers) == 1:
        return f"[{numbers[0]}]"
    whole = len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1
    return f"[{numbers[0]}..{numbers[-1]}]" if whole else f"[{','.join(map(str, numbers[:4]))}]"


def _partitions(topic: Values) -> str:
    for name in PARTITION_ARRAYS:
        partitions = topic.get(name)
        if isinstance(partitions, list) and partitions:
            numbers = [_index(partition) for partition in partitions]
            if len(numbers) == 1 and numbers[0] is not None:
                return f"[{numbers[0]}]"
            known = sorted({number for number in numbers if number is not None})
            if not known:
                return f"[{len(partitions)}]"
            return _ranged(known)
    return ""


def _index(partition: object) -> int | None:
    if isinstance(partition, dict):
        for name in PARTITION_NUMBERS:
            number = partition.get(name)
            if isinstance(number, int):
                return number
    return partition if isinstance(partition, int) else None


def records_in(message: ExchangeMessage) -> int:
    """Return how many records the batch headers of a message announce."""
    return _counted_records(message)[0]


def records_words(count: int, size: int, codecs: Set[str]) -> str:
    """The number of records in a message and their codecs, in words; empty if they have no bytes."""
    if not size:
        return ""
    named = " ".join(sorted(codecs - {"none"}))
    return f"{count} record{'s' if count != 1 else ''} {named}".rstrip()


def _counted_records(message: ExchangeMessage) -> tuple[int, int, set[str]]:
    """Records, their bytes, their codecs, from the batch headers alone. Messages from before 0.11 count one each."""
    count = size = 0
    codecs: set[str] = set()
    for struct in structs_with(message.layout, message.body, RECORDS):
        records = struct.get("records")
        if not isinstance(records, bytes):
            continue
        size += len(records)
        held = count_records(records)
        count += held.records
        codecs |= held.codecs
    return count, size, codecs


class InfoWords(NamedTuple):
    """What the info column says of two messages, but for the partitions of a fetch session and records."""

    subjects: tuple[str, ...]
    topics: tuple[NamedTopic, ...]
    errors: tuple[str, ...]
    otherwise: str
    """What is said if there is nothing else."""


def info_words(request: ExchangeMessage | None, response: ExchangeMessage | None, findings: list[Finding]) -> InfoWords:
    """Return the words for two messages. `findings` are those of the row, of which errors are shown."""
    return InfoWords(
        tuple(_subjects(request)),
        tuple(_topics(request) or _topics(response)),
        error_names(findings),
        next((finding.message for finding in findings), ""),
    )


def info_text(words: InfoWords, records: str, names: Mapping[str, str], session: str = "") -> str:
    """Put the words together, errors first, with those of records and of a fetch session. `names` are those of topic
    ids."""
    parts = [*words.errors, *filter(None, (session,)), *words.subjects]
    if words.topics:
        more = f" +{len(words.topics) - MAX_TOPICS}" if len(words.topics) > MAX_TOPICS else ""
        shown = (names.get(topic, topic) + partitions for topic, partitions in words.topics[:MAX_TOPICS])
        parts.append(" ".join(shown) + more)
    if records:
        parts.append(records)
    return " · ".join(parts)


def info(
    request: ExchangeMessage | None, response: ExchangeMessage | None, findings: list[Finding],
    names: Mapping[str, str], session: str = "",
) -> str:  # fmt: skip
    """Return the text for two messages, with that of a fetch session; empty if they say nothing."""
    counts = (_counted_records(message) for message in (request, response) if message is not None)
    records = next(filter(None, (records_words(*count) for count in counts)), "")
    return info_text(info_words(request, response, findings), records, names, session)


def exchange_info(exchange: Exchange) -> str:
    """Return the info column of an exchange that has its request."""
    request = exchange.request
    assert request is not None
    session = "" if request.body.get("topics") else session_words(exchange) or ""
    words = info(request, exchange.response, exchange.row_findings, request.context.topic_names, session)
    readings = [finding.message for finding in exchange.row_findings if finding.code == READS_AS]
    words = words or next((each.message for each in exchange.row_findings if each.code != READS_AS), "")
    words = " · ".join(filter(None, (*readings, words, unseen_words(request, exchange.response))))
    return with_damage(words, request, exchange.response)


def with_damage(words: str, request: ExchangeMessage | None, response: ExchangeMessage | None) -> str:
    """Return the words of a row behind what its messages are not read to their end for, if they are not."""
    found = [
        finding.under(name)
        for name, message in (("request", request), ("response", response))
        if message is not None
        for finding in message.findings
        if finding.code in UNREAD
    ]
    said = [f"{each.path}: {each.message}" for each in found]
    return marked(" · ".join(filter(None, (*said, words))), found)


def unseen_words(*messages: ExchangeMessage | None) -> str:
    """Which bytes of messages are not shown: cut off by the snap length, or masked; empty if all are."""
    return " · ".join(filter(None, (_cut_words(*messages), _masked_words(*messages))))


def _cut_words(*messages: ExchangeMessage | None) -> str:
    cut = [each for each in messages if each is not None and each.is_cut]
    if not cut:
        return ""
    size, there = sum(each.size for each in cut), sum(len(each.data) for each in cut)
    return f"{size - there:,} of {counted(size, 'byte')} cut off by the snap length"


def _masked_words(*messages: ExchangeMessage | None) -> str:
    """How many bytes of messages are masked as a whole, and what shows them; empty if none are."""
    size = sum(each.masked_size for each in messages if each is not None)
    return f"{counted(size, 'byte')} masked: --show-secrets shows them" if size else ""

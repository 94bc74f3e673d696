"""What rows of tables say about topics and partitions, with the bytes of their records: the same as from the captures.

Columns of `partitions` have it of the APIs with the most rows, unless a body names something besides: a topic without
partitions, one that a fetch session forgets, the partitions of that session. Of other bodies one of equal ones is read,
as it is stored.

Invariant: the mentions are those of `exchange_contents.record_bytes_by_topic`, in its order.
"""

from collections.abc import Iterator
from typing import Final

from dissector.analysis.stats.exchange_contents import record_bytes_by_topic
from dissector.analysis.stats.topic_mentions import topic_structs
from dissector.exchange.from_json import REQUEST, RESPONSE
from dissector.exchange.to_json import PARTIAL_BYTES
from dissector.protocol.embedded.topics import NO_TOPIC_ID
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api
from dissector.tables.database import Database
from dissector.tables.row_to_exchange import stored_exchange
from dissector.tables.sql import Row, same, where
from dissector.tables.views import IS_LIVE

IN_COLUMNS: Final = (
    ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT,
)  # fmt: skip
"""APIs that name nothing but partitions, as a rule."""
_BESIDE: Final = (
    rf'"(forgotten_topics_data":\[\{{|(partitions|partition_data|partition_responses)":(\[\]|null)|{PARTIAL_BYTES}":)'
)
"""What bodies have that name something that columns do not; as a pattern, for which a text is read once."""
_TOPICS: Final = r'"(topics|topic_data|responses)":\[\{'
"""What bodies have that name any topic."""
_BODY: Final = '^.*?"body":'
"""What a stored message has up to its body."""
_SESSION: Final = '"fetch_session":[{'
_TYPES: Final = {
    "body": "BIGINT", "place": "BIGINT", "topic": "VARCHAR", "topic_partition": "BIGINT", "sent": "BIGINT",
    "back": "BIGINT", "error": "BIGINT",
}  # fmt: skip


def define_topic_rows(database: Database) -> None:
    """Define `topic_rows`: a row for each topic, and for each partition, that a row of `measured` mentions."""
    _define_in_columns(database)
    _define_of_bodies(database)
    found = "min(place) AS place, sum(sent) AS sent, sum(back) AS back, max(error) AS error"
    database.define(
        "topic_rows",
        "SELECT t.*, 0 AS unanswered, m.latency_ns, m.bucket, m.may_wait"
        f" FROM (SELECT number, topic, topic_partition, {found}"
        f" FROM in_columns GROUP BY number, topic, topic_partition UNION ALL SELECT number, topic, NULL, {found}"
        " FROM in_columns GROUP BY number, topic UNION ALL BY NAME SELECT * FROM mentions) t"
        " JOIN measured m USING (number)",
        kept=True,
    )


def _define_in_columns(database: Database) -> None:
    """Define `in_columns`, what columns have, and the numbers of exchanges that they have nothing of, or not all."""
    keys = ", ".join(str(int(key)) for key in IN_COLUMNS)
    database.define(
        "of_columns",
        f"SELECT m.number, {_either(_BESIDE)} AS has_more, {_either(_TOPICS)} AS has_topics, CASE WHEN"
        f" contains(b.request, '{_SESSION}') THEN json_extract(b.request, '$.fetch_session') END AS session"
        f" FROM measured m JOIN bodies b ON {same('m', 'b')} WHERE m.api_key IN ({keys})",
        kept=True,
    )
    placed = where("SELECT *, row_number() OVER () AS place FROM partitions_files", IS_LIVE.format(live="live"))
    names = f"topic IS NOT NULL AND topic NOT IN ('', '{NO_TOPIC_ID}')"
    database.define(
        "of_partitions",
        "SELECT m.number, p.place, p.topic, p.partition AS topic_partition,"
        f" CASE WHEN m.api_key = {int(ApiKey.PRODUCE)} THEN coalesce(records_size, 0) ELSE 0 END AS sent,"
        f" CASE WHEN m.api_key = {int(ApiKey.FETCH)} THEN coalesce(records_size, 0) ELSE 0 END AS back,"
        " CASE WHEN p.error IS NULL THEN 0 ELSE 1 END AS error"
        f" FROM ({placed}) p JOIN measured m ON {same('p', 'm')} JOIN of_columns o USING (number) WHERE {names}",
        kept=True,
    )
    twice = "SELECT number FROM of_partitions GROUP BY number, topic, topic_partition HAVING count(*) > 1"
    missing = "has_topics AND number NOT IN (SELECT number FROM of_partitions)"
    database.define("in_bodies", f"SELECT number FROM of_columns WHERE has_more OR {missing} UNION {twice}", kept=True)
    kind = """'[{"topic": "VARCHAR", "partitions": ["BIGINT"]}]'"""
    sessions = f"SELECT number, unnest(from_json(session, {kind})) AS each FROM of_columns WHERE session IS NOT NULL"
    of_sessions = (
        "SELECT number, row_number() OVER () - 1_000_000_000_000, each.topic, unnest(each.partitions), 0, 0, 0"
        f" FROM ({sessions})"
    )
    both = f"SELECT * FROM of_partitions UNION ALL {of_sessions}"
    database.define("in_columns", where(both, "number NOT IN (SELECT number FROM in_bodies)"))


def _define_of_bodies(database: Database) -> None:
    """Define `mentions`, what bodies say that columns do not have."""
    used = database.rows("SELECT DISTINCT api_key, api_version FROM measured WHERE api_key IS NOT NULL")
    naming = {row["api_key"] for row in used if _names_topics(row["api_key"], row["api_version"])} - set(IN_COLUMNS)
    others = ", ".join(map(str, sorted(naming))) or "NULL"
    bodies = ", ".join(f"regexp_replace(b.{side}, '{_BODY}', '')" for side in (REQUEST, RESPONSE))
    kinds = "m.api, m.api_key, m.api_version"
    database.define(
        "equal_bodies",
        f"SELECT row_number() OVER () AS body, {kinds}, any_value(b.request) AS request,"
        " any_value(b.response) AS response, list(m.number) AS numbers"
        f" FROM measured m JOIN bodies b ON {same('m', 'b')} WHERE m.api_key IS NULL OR m.api_key IN ({others})"
        f" OR m.number IN (SELECT number FROM in_bodies) GROUP BY {kinds}, {bodies}",
        kept=True,
    )
    read = database.rows("SELECT * EXCLUDE numbers FROM equal_bodies")
    database.define_rows("mentioned", _TYPES, ((row["body"], *each) for row in read for each in _mentions(row)))
    database.define(
        "mentions",
        "SELECT unnest(e.numbers) AS number, m.* EXCLUDE body FROM mentioned m JOIN equal_bodies e USING (body)",
    )


def _mentions(row: Row) -> Iterator[tuple[object, ...]]:
    for place, (subject, (sent, back, error)) in enumerate(record_bytes_by_topic(stored_exchange(row)).items()):
        topic, partition = (subject, None) if isinstance(subject, str) else subject
        yield place, topic, partition, sent, back, int(error)


def _either(pattern: str) -> str:
    """Return whether a pattern is in either message."""
    found = (f"regexp_matches(b.{side}, '{pattern}')" for side in (REQUEST, RESPONSE))
    return " OR ".join(f"coalesce({each}, FALSE)" for each in found)


def _names_topics(api_key: int, version: int) -> bool:
    """Return whether a message of an API in a version may name a topic."""
    known = api(api_key)
    names = () if known is None else (known.request, known.response)
    return any(topic_structs(name, min(version, known.versions.high)) for name in names if known is not None)

"""Every API stands in one set of what requests do: a release that brings another one fails here."""

from itertools import combinations

from dissector.protocol.schema.loader import apis
from dissector.replaying.effects import (
    BETWEEN_NODES,
    EFFECTS,
    LOGS_IN,
    READS,
    WRITES,
    Effect,
    creates_topics,
    effect_of,
)


def test_every_api_is_classed_once() -> None:
    assert {each.name for each in apis()} - {each.name for each in apis() if each.key in EFFECTS} == set()
    assert EFFECTS.keys() == {each.key for each in apis()}
    for a, b in combinations((READS, WRITES, LOGS_IN, BETWEEN_NODES), 2):
        assert not a & b


def test_names_that_change_something_do_not_read() -> None:
    """A second opinion, by Kafka's own words."""
    changing = ("Create", "Delete", "Alter", "Add", "Remove", "Update", "Write", "Commit", "Elect", "Renew", "Expire")
    reading = {each.name for each in apis() if EFFECTS[each.key] is Effect.READS}
    assert {name for name in reading if any(word in name for word in changing)} == set()
    between = {each.name for each in apis() if EFFECTS[each.key] is Effect.BETWEEN_NODES}
    assert {"Vote", "LeaderAndIsr", "WriteTxnMarkers", "Envelope"} <= between


def test_what_depends_on_the_request() -> None:
    assert effect_of(1, {"replica_id": -1}) is Effect.READS
    assert effect_of(1, {"replica_id": 2}) is Effect.BETWEEN_NODES
    assert effect_of(1, {"replica_state": {"replica_id": 2}}) is Effect.BETWEEN_NODES
    assert effect_of(1, {}) is Effect.READS
    assert effect_of(12_345, {}) is Effect.WRITES, "an API that nobody knows"
    named = [{"name": "orders"}]
    assert creates_topics(3, {"topics": named})
    assert creates_topics(3, {"topics": named, "allow_auto_topic_creation": True})
    assert not creates_topics(3, {"topics": named, "allow_auto_topic_creation": False})
    assert not creates_topics(3, {"topics": None})

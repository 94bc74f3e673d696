"""Topics and groups of many rows: those of the decoded exchanges."""

from pathlib import Path

import numpy as np
import pytest

from dissector import encode_request, encode_response
from dissector.bulk import subject_columns
from dissector.bulk.subject_columns import UNREAD, Subjects
from dissector.capture_session import Capture
from dissector.exchange.message_subjects import GROUP, TOPIC
from dissector.exchange.model import Exchange
from dissector.exchange.row_fields import topic_names
from tests.conftest import PCAPS
from tests.traffic import Turn, capture_of, conversation

TOPIC_ID = "Zm9vYmFyYmF6cXV4MTIzNA"


def decoded(exchange: Exchange) -> Subjects:
    groups = dict.fromkeys(str(group) for group in GROUP.of(exchange) if group)
    return Subjects(tuple(topic_names(exchange, TOPIC.of(exchange))), tuple(groups))


def in_columns(capture: Capture) -> list[Subjects | None]:
    """Those of all rows; None where a row has to be decoded."""
    found = capture.messages.subjects(np.arange(len(capture)))
    return [None if number == UNREAD else found.subjects[number] for number in found.numbers.tolist()]


@pytest.mark.parametrize("name", ["java-classic.pcapng", "two-brokers.pcapng", "librdkafka.pcapng"])
def test_subjects_are_those_of_the_decoded_rows(name: str) -> None:
    with Capture([str(PCAPS / name)]) as capture:
        rows = list(capture.exchanges())
        found = in_columns(capture)
        for subjects, exchange in zip(found, rows, strict=True):
            assert subjects in (None, decoded(exchange))
        assert found.count(None) < len(found) / 20, "few need a careful look"


def test_a_topic_id_has_its_name_once_that_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = {"partition": 0, "fetch_offset": 0}
    fetch = encode_request("Fetch", 13, {"topics": [{"topic_id": TOPIC_ID, "partitions": [partition]}]})
    ask = encode_request("Metadata", 12, {"topics": None}, correlation_id=1)
    named = encode_response("Metadata", 12, {"topics": [{"name": "orders", "topic_id": TOPIC_ID}]}, correlation_id=1)
    monkeypatch.setattr("dissector.capture.pcap.BATCH_PACKETS", 4)
    with Capture(
        [capture_of(tmp_path, conversation([Turn(True, fetch), Turn(True, ask), Turn(False, named)]))]
    ) as capture:
        of_fetch = []
        for _ in capture.read(sort=False):
            of_fetch += [each.topics for each in in_columns(capture)[:1] if each is not None]
    assert of_fetch[0] == (TOPIC_ID,)
    assert of_fetch[-1] == ("orders",)


def test_of_a_long_session_the_first_topics_are_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(subject_columns, "MOST_OF_SESSION", 2)
    partitions = [{"partition": 0, "fetch_offset": 0}]
    begin = {"session_epoch": 0, "topics": [{"topic": name, "partitions": partitions} for name in "abc"]}
    turns = [
        Turn(True, encode_request("Fetch", 11, begin)),
        Turn(True, encode_request("Fetch", 11, {"session_id": 7, "session_epoch": 1}, correlation_id=1)),
    ]
    with Capture([capture_of(tmp_path, conversation(turns))]) as capture:
        list(capture.exchanges())
        assert in_columns(capture) == [Subjects(("a", "b", "c"), ()), Subjects(("a", "b"), ())]

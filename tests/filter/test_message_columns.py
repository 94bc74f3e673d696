"""Conditions on fields of messages, evaluated on columns of them: what they say, exchanges say too."""

from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dissector.bulk import message_answers
from dissector.capture_session import Capture
from dissector.exchange.field_paths import SIDES, places
from dissector.filter import FilterError, parse
from dissector.filter.column_evaluation import NO, OPEN, YES
from dissector.filter.predicates import OPERATORS
from dissector.filter.selection import evaluate_index
from tests.cases import cases
from tests.filter.evaluation import Leaf, exchanges, leaves, objects, opened

NAMES = (
    "java", "java-admin", "java-classic", "java-transactions", "java-share", "librdkafka", "kafka-python-as-0.10",
    "plain-socket-message-sets",
)  # fmt: skip
ROW_FIELDS = ("topic", "partition", "group")


@cache
def values(name: str) -> list[Leaf]:
    """The paths into headers and bodies that lead to a plain value in a capture, each with one of its values."""
    found = {}
    for each in objects(name):
        if each["kind"] == "exchange":
            for path, value in leaves({side: each[side] for side in SIDES}):
                if path[1:2] in (("body",), ("header",)) and isinstance(value, bool | int | str | float | None):
                    found[path, str(value)] = path, value
    return sorted(found.values(), key=str)


def literal(value: object) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return (
        {None: "null", True: "true", False: "false"}.get(value, str(value))
        if value is None or isinstance(value, bool)
        else str(value)
    )


@st.composite
def conditions(draw: st.DrawFn, name: str) -> str:
    """A condition on a field of messages that a capture has, or on any other."""
    if draw(st.booleans()):
        path, value = draw(st.sampled_from(values(name)))
        field = ".".join(path[: draw(st.integers(2, len(path)))] if draw(st.booleans()) else path[-1:])
    else:
        place = draw(st.sampled_from(places(draw(st.sampled_from(SIDES)))))
        field, value = ".".join(place.called), draw(st.sampled_from([0, 1, -1, "a", None, True]))
    if draw(st.integers(0, 3)) == 0:
        field = draw(st.sampled_from(ROW_FIELDS))
    if isinstance(value, int) and not isinstance(value, bool):
        value += draw(st.sampled_from([0, 0, 1, -1]))
    form = draw(st.sampled_from(("{0}", "!({0})", "{0} {1} {2}", "{0} {1} {2}", "{0} {1} {2}", "!({0} {1} {2})")))
    if field.startswith(("request", "response")) and field.count(".") == 0:
        field += ".body"
    operator = draw(st.sampled_from(OPERATORS))
    wanted = f"{{{literal(value)}}}" if operator == "in" else literal(value)
    return form.format(field, operator, wanted)


@st.composite
def filters(draw: st.DrawFn, name: str) -> str:
    parts = draw(st.lists(conditions(name), min_size=1, max_size=3))
    return draw(st.sampled_from((" && ", " || "))).join(parts)


@pytest.mark.long
@given(st.data(), st.sampled_from(NAMES), st.integers(0, 9))
def test_what_columns_say_is_what_exchanges_say(data: st.DataObject, name: str, few: int) -> None:
    text = data.draw(filters(name))
    try:
        wanted = parse(text)
    except FilterError:
        assume(False)
    capture = opened(name)
    by_exchange = np.array([wanted.matches(each, capture.start_ns) for each in exchanges(name)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_answers, "FEW", few)
        results = evaluate_index(wanted, capture, range(len(capture)), reads_messages=True)
    assert by_exchange[results == YES].all(), text
    assert not by_exchange[results == NO].any(), text


@cases(
    "text",
    [
        "request.max_wait_ms > 100", "response.partitions.high_watermark > 3", "request.header.correlation_id > 5",
        "response.is_internal", "request.topics.topic_id", 'group == "java-orders"', "!(request.acks == ALL)",
        "request.rack_id == '' && max_bytes > 1",
    ],
)  # fmt: skip
def test_plain_fields_are_read_from_columns(text: str) -> None:
    """Of a client that needs no careful look, whose messages repeat themselves."""
    results = evaluate_index(parse(text), opened("java"), range(len(opened("java"))), reads_messages=True)
    assert np.count_nonzero(results == OPEN) < len(results) / 10


@pytest.mark.long
def test_fetches_of_the_metadata_log_are_read_from_columns_where_nothing_is_masked() -> None:
    capture = opened("kraft-quorum")
    for text in ("request.max_wait_ms >= 0", "response.throttle_time_ms >= 0 && api == Fetch", "error"):
        results = evaluate_index(parse(text), capture, range(len(capture)), reads_messages=True)
        by_exchange = np.array([parse(text).matches(each) for each in exchanges("kraft-quorum")])
        assert np.count_nonzero(results == OPEN) < len(results) / 4
        assert (by_exchange == (results == YES))[results != OPEN].all()


def test_messages_are_decoded_once_for_equal_values(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = opened("java")
    decoded = []
    decoder = capture._decoder
    exchanges_of = type(decoder).exchanges

    def watched(self: object, rows: range) -> object:
        decoded.extend(rows)
        return exchanges_of(self, rows)

    monkeypatch.setattr(type(decoder), "exchanges", watched)
    wanted = parse("request.topics.topic_id && request.rack_id == x")
    every = range(len(capture))
    monkeypatch.setattr(message_answers, "ROWS_PER_MESSAGE", 1)
    first = evaluate_index(wanted, capture, every, reads_messages=True)
    assert 0 < len(decoded) < np.count_nonzero(first != OPEN)
    decoded.clear()
    assert (evaluate_index(wanted, capture, every, reads_messages=True) == first).all()
    assert not decoded


def test_names_of_topics_that_are_learned_later_count() -> None:
    """An answer is forgotten when there are more names: by its id, a topic was not known by its name before."""
    with Capture([opened("java").names[0]]) as capture:
        wanted = parse("topic == java-orders")
        for _ in capture.read():
            found = [row for each in capture.select(wanted) for row in each.rows.tolist()]
        assert found == [n for n, each in enumerate(capture.exchanges()) if wanted.matches(each)]

"""What a part of an exchange says of a filter, the whole exchange says, too."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.exchange.model import Exchange
from dissector.filter import parse
from dissector.filter.column_evaluation import NO, OPEN, YES
from dissector.filter.early_evaluation import Known, asks_response, evaluate_early, never_known, reads_topics, varies
from tests.filter.evaluation import exchanges

NAMES = ("java", "java-classic", "java-transactions")
LEAVES = (
    "api == Produce", "api in {Fetch, Metadata}", "version > 8", "client_id ~ consumer", "corr < 20", "topic == orders",
    "topic", "partition == 0", "group", "error", "error == NONE", "request.acks == -1",
    "response.throttle_time_ms == 0",
    "request.header.client_id", "topics.name == orders", "response.size > 100", "size > 60", "request.size < 90",
    "record.value", "record.key", "kind == exchange", "request", "response", "ip.addr == 127.0.0.1",
    "request.body.session_epoch > 0", "node_id == 1",
)  # fmt: skip


def filters() -> st.SearchStrategy[str]:
    def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pairs = st.tuples(inner, st.sampled_from(["&&", "||"]), inner)
        return inner.map(lambda one: f"!({one})") | pairs.map(lambda parts: f"({' '.join(parts)})")

    return st.recursive(st.sampled_from(LEAVES), joined, max_leaves=5)


def of_part(exchange: Exchange, known: Known) -> Exchange:
    """An exchange with no more than a part; without what is known of its fetch session, which no message has."""
    response = exchange.response if known is Known.BOTH else None
    fields = exchange.fields if known is Known.BOTH else exchange.fields._replace(response_size=None)
    request = exchange.request
    return Exchange(fields, exchange.api_key, request, response)


@given(st.data())
def test_a_part_says_what_the_whole_says(data: st.DataObject) -> None:
    condition = parse(data.draw(filters())).condition
    every = [each for each in exchanges(data.draw(st.sampled_from(NAMES))) if each.request and each.response]
    exchange = data.draw(st.sampled_from(every))
    whole = YES if condition.holds(of_part(exchange, Known.BOTH), 0) else NO
    for known in Known:
        found = evaluate_early(condition, of_part(exchange, known), known)
        assert found in ((NO, YES) if known is Known.BOTH else (NO, OPEN, YES))
        assert found in (OPEN, whole), known


@pytest.mark.parametrize(
    ("filter", "key", "expected"),
    [
        ("api == Produce", 0, YES), ("api == Produce", 1, NO), ("api == Produce && topic == x", 1, NO),
        ("api == Produce && topic == x", 0, OPEN), ("topic == x", 12, NO), ("topic == x", 3, OPEN),
        ("error", 0, OPEN), ("request.acks == 0", 1, NO), ("request.acks == 0", 0, OPEN), ("record.key", 3, NO),
        ("record.key", 1, OPEN), ("!(topic == x)", 12, YES), ("api == Fetch || error", 1, YES),
    ],
)  # fmt: skip
def test_a_head_decides_what_it_can(filter: str, key: int, expected: int) -> None:
    exchange = next(each for each in exchanges("java") if each.request)
    row = exchange.fields
    head = Exchange(row, key, exchange.request, None)
    assert evaluate_early(parse(filter).condition, head, Known.HEAD) == expected


def test_what_a_filter_asks_for() -> None:
    assert never_known(parse("api == Fetch && (latency > 3ms || topic)").condition) == "latency"
    assert never_known(parse("api == Fetch && topic").condition) is None
    assert asks_response(parse("topic && !error").condition)
    assert asks_response(parse("response.size > 3").condition)
    assert not asks_response(parse("topic && api == Fetch").condition)
    assert varies(parse("api == Fetch && corr == 3").condition)
    assert not varies(parse("api == Fetch && client_id == x").condition)
    assert reads_topics(parse("api == Fetch && !(topic == x)").condition)
    assert not reads_topics(parse("group == x").condition)

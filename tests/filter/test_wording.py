"""A value that somebody points at, written as a filter, finds where it came from."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.exchange.model import Exchange
from dissector.exchange.row_field import FieldType
from dissector.exchange.row_fields import row_fields
from dissector.filter import cell_expression, expression, parse
from dissector.filter.conditions import MessageCondition
from tests.cases import cases
from tests.filter.evaluation import Leaf, exchanges, leaves

OF_MAKE_TEST = ("java-admin", "plain-socket-message-sets")
"""Those whose values are all tried there; of the others some are."""
NAMES = ("java", "java-admin", "java-classic", "java-streams", "plain-socket-message-sets", "two-brokers")


def values(exchange: Exchange) -> list[Leaf]:
    """Every value of the bodies and headers, by its path, what is inside bytes too."""
    found: list[Leaf] = []
    for side, message in (("request", exchange.request), ("response", exchange.response)):
        if message is not None:
            found += [((side, "header", *path), value) for path, value in leaves(message.header)]
            found += [((side, *path), value) for path, value in leaves(message.decoded_body)]
    return [(path, value) for path, value in found if not {"unknown_tagged_fields", "data", "compressed"} & {*path}]


@given(st.data())
def test_the_filter_of_a_value_selects_where_it_came_from(data: st.DataObject) -> None:
    exchange = data.draw(st.sampled_from(exchanges(data.draw(st.sampled_from(NAMES)))))
    path, value = data.draw(st.sampled_from(values(exchange)))
    numbered = "".join(f".{name}" + data.draw(st.sampled_from(["", "[0]", "[17]"])) for name in path)[1:]
    text = expression(numbered, value)
    assert "[" not in text.partition(" ")[0]
    assert parse(text).matches(exchange), text


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [each if each in OF_MAKE_TEST else pytest.param(each, marks=pytest.mark.exhaustive) for each in NAMES]
)
def test_the_filter_of_every_value_selects_where_it_came_from(name: str) -> None:
    known: dict[str, Any] = {}
    for exchange in exchanges(name):
        for text in {expression(".".join(path), value) for path, value in values(exchange)}:
            wanted = known.get(text) or known.setdefault(text, parse(text))
            assert wanted.matches(exchange), text


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_filter_of_a_cell_selects_its_row(name: str) -> None:
    for exchange in exchanges(name):
        row = exchange.row
        cells = {
            "number": row.number, "kind": row.kind, "api": row.api, "api_key": exchange.api_key,
            "version": row.version, "client_id": row.client_id, "client": row.client, "server": row.server,
            "conn": row.connection, "corr": row.correlation_id, "latency": row.latency_ns, "time": row.time_ns,
            "request.size": row.request_size, "response.size": row.response_size, "info": row.info or None,
        }  # fmt: skip
        for field, value in cells.items():
            text = cell_expression(field, value)
            if row.kind == "exchange":
                assert parse(text).matches(exchange, 12345), text


@pytest.mark.long
@pytest.mark.slow
def test_the_filter_of_every_row_field_selects_its_row() -> None:
    for field in row_fields():
        for exchange in exchanges("java"):
            for value in field.values(exchange):
                if field.type is not FieldType.PRESENCE:
                    for name in field.names:
                        assert parse(cell_expression(name, value)).matches(exchange)


@cases(
    ("path", "value", "text"),
    [
        ("response.responses[0].partitions[2].error_code", 3,
         "response.responses.partitions.error_code == UNKNOWN_TOPIC_OR_PARTITION"),
        ("request.max_wait_ms", 500, "request.max_wait_ms == 500ms"),
        ("request.topics[1].name", 'a "b" \\ \x1b', 'request.topics.name == "a \\"b\\" \\\\ \\u{1b}"'),
        ("request.topics[1].name", "orders-1", "request.topics.name == orders-1"),
        ("request.topics", None, "request.topics == null"),
        ("request.topics[1].name", "null", 'request.topics.name == "null"'),
        ("request.protocols[0].metadata", b"\0\xff", "request.protocols.metadata == 0x00ff"),
        ("request.allow_auto_topic_creation", True, "request.allow_auto_topic_creation == true"),
        ("request.topics", [{}], "request.topics"),
        ("response.entries.values.value", float("nan"), "response.entries.values.value"),
        ("response.error_code", 12345, "response.error_code == 12345"),
    ],
)  # fmt: skip
def test_values_are_written_as_people_write_them(path: str, value: object, text: str) -> None:
    assert expression(path, value) == text
    assert parse(text)


@given(st.text() | st.binary() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63 - 1))
def test_any_value_is_written_so_that_it_is_read_again(value: object) -> None:
    # What bytes hold is compared as what it is.
    text = expression("metadata_decoded.topics", value)
    condition = parse(text).condition
    assert isinstance(condition, MessageCondition)
    [test, *_] = next(iter(condition.tests.values()))
    assert test.predicate(value)

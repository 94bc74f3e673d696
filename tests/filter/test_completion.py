"""What is offered where somebody types: it is right there, it comes from the schema, and it makes a filter."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.filter import FilterError, complete, parse
from dissector.filter.completion import MOST
from dissector.protocol.schema.loader import apis
from tests.cases import cases


def offered(text: str) -> list[str]:
    whole, _, rest = text.partition("¦")
    cursor, whole = len(whole), whole + rest
    return [each.text for each in complete(whole, cursor)]


@cases(
    ("text", "first"),
    [
        ("ap", "api"),
        ("api == Fet", "Fetch"),
        ("api == OFFSETC", "OffsetCommit"),
        ("api in {Fetch, Prod", "Produce"),
        ("error == UNKNOWN_TOP", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("response.error_code != NOT_LE", "NOT_LEADER_OR_FOLLOWER"),
        ("request.isolation_level == read_c", "READ_COMMITTED"),
        ("severity >= w", "warning"),
        ("kind == g", "gap"),
        ("finding == unans", "unanswered"),
        ("api == Fetch && request.max_w", "request.max_wait_ms"),
        ("request.topics.na", "request.topics.name"),
        ("response.header.", "response.header.correlation_id"),
        ("records.ke", "records.key"),
        ("latency ", "=="),
        ("api in ", "{"),
        ("client_id c", "contains"),
        ("api == Fetch ", "&&"),
        ("api =", "=="),
        ("request.allow_auto_topic_creation == ", "true"),
        ("api == Fet¦ && error", "Fetch"),
        ("la¦ > 5ms", "latency"),
    ],
)
def test_what_is_meant_comes_first(text: str, first: str) -> None:
    assert offered(text)[0] == first


def test_paths_are_of_the_apis_that_are_left() -> None:
    assert "request.max_wait_ms" in offered("request.max")
    assert "request.max_wait_ms" in offered("api == Fetch && request.")
    assert "request.max_wait_ms" not in offered("api == Metadata && request.")
    assert "request.max_wait_ms" in offered("api == Metadata || request.max")
    assert "request.max_wait_ms" not in offered("api == Metadata && (latency > 1ms or request.max_w")
    assert "request.max_wait_ms" in offered("(api == Metadata && error) || request.max_w")


def test_one_level_at_a_time() -> None:
    below = offered("api == Metadata && request.body.")
    assert "request.body.topics." in below
    assert not any(word.count(".") > 3 for word in below)
    assert "request.body.topics.name" in offered("api == Metadata && request.body.topics.")


def test_operators_are_those_that_the_field_takes() -> None:
    assert "<" not in offered("client_id ")
    assert "contains" not in offered("latency ")
    assert {"<", "==", "in"} <= set(offered("latency "))
    assert "contains" in offered("api ")


def test_a_completion_names_its_type_and_messages() -> None:
    [found] = [each for each in complete("request.max_wait_ms", 19) if each.text == "request.max_wait_ms"]
    assert "duration" in found.words
    assert "Fetch v" in found.words
    assert (found.start, found.end) == (0, 19)


def test_every_api_is_offered_by_its_name() -> None:
    for each in apis():
        assert each.name in offered(f"api == {each.name}")


@pytest.mark.long
@settings(max_examples=50)
@given(st.sampled_from(["", "api == Fetch && ", "(", "not "]), st.data())
def test_what_is_offered_makes_a_filter(before: str, data: st.DataObject) -> None:
    """Whoever takes what is offered, again and again, has a filter in the end."""
    text = before
    for _ in range(8):
        found = complete(text, len(text))
        assert len(found) <= MOST
        if not found:
            break
        chosen = data.draw(st.sampled_from(found))
        text = text[: chosen.start] + chosen.text + text[chosen.end :]
        text += "" if chosen.text.endswith(".") else " "
    closing = ")" if before == "(" else ""
    ends = ("", "}", "x", "1", "1s", "true", "x}", "0..1}", "1s}", "latency", "size", " == x")
    assert any(is_good(f"{text}{end}{closing}") for end in ends) or _UNTYPED.search(text), text


_UNTYPED = re.compile(r"(,|\{|\.|==|!=|[<>]=?|in|contains|matches) ?$")
"""Where a value of some enum, or a name, is still to be typed."""


def is_good(text: str) -> bool:
    try:
        parse(text)
    except FilterError:
        return False
    return True

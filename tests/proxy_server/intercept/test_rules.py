"""What is to be held, as it is typed: which sides, what is refused and where."""

import pytest

from dissector.proxy_server.faults import FaultError
from dissector.proxy_server.faults.rules import LONGEST
from dissector.proxy_server.intercept import read_intercept


@pytest.mark.parametrize(
    ("text", "filter_text", "sides"),
    [
        ("", "", "both"),
        ("  ", "", "both"),
        ("requests", "", "requests"),
        (" responses ", "", "responses"),
        ("api == Fetch", "api == Fetch", "both"),
        ("requests api == Fetch", "api == Fetch", "requests"),
        ("responses\tapi == Fetch", "api == Fetch", "responses"),
        ('topic == "responses"', 'topic == "responses"', "both"),
        ("client_id == requests", "client_id == requests", "both"),
        ("error == NOT_COORDINATOR", "error == NOT_COORDINATOR", "responses"),
        ("responses error", "error", "responses"),
        ("response.throttle_time_ms > 0", "response.throttle_time_ms > 0", "responses"),
        ("request.acks == 0", "request.acks == 0", "both"),
    ],
)
def test_a_text_says_what_is_held(text: str, filter_text: str, sides: str) -> None:
    rule = read_intercept(text)
    assert (rule.filter_text, rule.requests, rule.responses) == (filter_text, sides != "responses", sides != "requests")
    assert len(rule.rules) == rule.requests + rule.responses


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("api === Fetch", "column 7: "),
        ("requests api === Fetch", "column 16: "),
        ("  responses   api === Fetch", "column 21: "),
        ("requestsapi == Fetch", "column 1: "),
        ("requests error", "column 10: a request comes before its response, which the filter needs"),
        ("api == Fetch && latency > 5ms", "column 17: what passes can't be asked for latency"),
        ("requests finding == injected", "column 10: what passes can't be asked for finding"),
        ("(", "column "),
    ],
)
def test_what_can_not_be_held_is_refused_where_it_stands(text: str, words: str) -> None:
    with pytest.raises(FaultError) as refused:
        read_intercept(text)
    assert str(refused.value).startswith(words)


def test_a_text_has_a_length() -> None:
    text = "api == Fetch"
    assert read_intercept(text + " " * (LONGEST - len(text))).filter_text == text
    with pytest.raises(FaultError, match="at most 65,536 characters"):
        read_intercept(text + " " * (LONGEST - len(text) + 1))

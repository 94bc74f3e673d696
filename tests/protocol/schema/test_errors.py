"""What errors require of a client: one sentence for every error."""

import json
import re
from importlib.resources import files

from dissector.protocol.schema.errors import advice, known_errors
from tests.cases import cases


def test_exactly_the_imported_errors_have_advice_in_their_order() -> None:
    text = files("dissector.protocol.schema").joinpath("error_advice.json").read_text(encoding="utf-8")
    assert list(json.loads(text)) == [each.name for each in known_errors().values()]


def test_advice_is_one_line_of_8_to_25_words_and_nobody_elses() -> None:
    sentences = [each.advice for each in known_errors().values()]
    assert len(set(sentences)) == len(sentences)
    for sentence in sentences:
        assert 8 <= len(sentence.split()) <= 25, sentence
        assert re.fullmatch(r"[A-Z][ -~]+\.", sentence), sentence


@cases("each", [e for e in known_errors().values() if e.retriable], ids=lambda e: e.name)
def test_what_may_be_retried_is_not_called_hopeless(each: object) -> None:
    assert not re.search("do not (retry|resend)|retrying does not help|for good", str(each))


def test_success_and_unknown_codes_ask_nothing() -> None:
    assert advice(0) == advice(12345) == ""
    assert "coordinator again" in advice(16)

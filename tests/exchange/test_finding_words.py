"""Codes and words of findings in the info column."""

from dissector.core.finding import Finding, Severity
from dissector.exchange.finding_words import marked, with_words
from tests.cases import cases

NO_RESPONSE = Finding("unanswered", Severity.WARNING, "no response")
SLOW = Finding("slow", Severity.WARNING, "took 9 s")
REFUSED = Finding("refused", Severity.ERROR, "correct the password")


@cases(
    ("words", "others", "found", "shown"),
    [
        ("orders[0]", [], [], "orders[0]"),
        ("orders[0]", [], [SLOW], "[slow] orders[0]"),
        ("orders[0]", [], [SLOW, REFUSED], "[slow] [refused] correct the password · orders[0]"),
        ("no response", [NO_RESPONSE], [SLOW], "[slow] took 9 s"),
        ("no response", [NO_RESPONSE], [SLOW, SLOW], "[slow] took 9 s"),
        ("", [], [REFUSED], "[refused] correct the password"),
        ("[slow] is the name of a topic", [], [], "[slow] is the name of a topic"),
    ],
)
def test_an_error_and_what_says_more_than_the_row_have_words(
    words: str, others: list[Finding], found: list[Finding], shown: str
) -> None:
    assert with_words(marked(words, found), [*others, *found]) == shown

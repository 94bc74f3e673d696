"""Codes and words of findings in the info column."""

from dissector.core.finding import Finding, Severity
from dissector.exchange.finding_words import CONSEQUENCES, ERROR_RESPONSE, heading_sizes, marked, with_words
from dissector.findings.registry import CODES
from tests.cases import cases

NO_RESPONSE = Finding("unanswered", Severity.WARNING, "no response")
SLOW = Finding("slow", Severity.WARNING, "took 9 s")
REFUSED = Finding("refused", Severity.ERROR, "correct the password")
NEAR_LOSS = Finding("near-loss", Severity.NOTE, "bytes are missing")
STORM = Finding("error-storm", Severity.WARNING, "12 times")
MISSING = Finding(ERROR_RESPONSE, Severity.WARNING, "UNKNOWN_TOPIC_OR_PARTITION: create the topic")
CORRUPT = Finding("refused-batch", Severity.ERROR, "UNKNOWN_TOPIC_OR_PARTITION: it is called teas")
DAMAGED = Finding("malformed", Severity.ERROR, "ends in the middle")
TOPIC = "UNKNOWN_TOPIC_OR_PARTITION · tea[0]"


@cases(
    ("words", "others", "found", "shown"),
    [
        ("orders[0]", [], [], "orders[0]"),
        ("orders[0]", [], [SLOW], "[slow] orders[0]"),
        ("orders[0]", [], [SLOW, REFUSED], "[refused] [slow] correct the password · orders[0]"),
        ("orders[0]", [], [SLOW, NEAR_LOSS], "[near-loss] [slow] orders[0]"),
        ("no response · 7 bytes masked", [NO_RESPONSE], [REFUSED], "[refused] correct the password · 7 bytes masked"),
        ("no response · 7 bytes masked", [NO_RESPONSE], [SLOW], "[slow] no response · 7 bytes masked"),
        (TOPIC, [MISSING], [], TOPIC),
        (TOPIC, [MISSING], [STORM], "UNKNOWN_TOPIC_OR_PARTITION [error-storm] · tea[0]"),
        (
            TOPIC,
            [MISSING],
            [STORM, REFUSED],
            "UNKNOWN_TOPIC_OR_PARTITION [refused] [error-storm] correct the password · tea[0]",
        ),
        (TOPIC, [MISSING], [CORRUPT], "UNKNOWN_TOPIC_OR_PARTITION [refused-batch] it is called teas · tea[0]"),
        ("UNKNOWN_TOPIC_OR_PARTITION", [MISSING], [STORM], "UNKNOWN_TOPIC_OR_PARTITION [error-storm]"),
        ("UNKNOWN_TOPIC_OR_PARTITIONS", [MISSING], [STORM], "[error-storm] UNKNOWN_TOPIC_OR_PARTITIONS"),
        (
            f"[malformed] body: ends in the middle · {TOPIC}",
            [MISSING, DAMAGED],
            [STORM],
            f"[malformed] [error-storm] body: ends in the middle · {TOPIC}",
        ),
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


@cases(
    ("info", "findings", "names", "said"),
    [
        ("orders[0]", [], "", ""),
        ("[slow] orders[0]", [SLOW], "[slow] ", "[slow] "),
        ("[slow] orders[0]", [], "", ""),
        (TOPIC, [MISSING], "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("UNKNOWN_TOPIC_OR_PARTITION [refused-batch] it is called teas · tea[0]", [MISSING, CORRUPT],
         "UNKNOWN_TOPIC_OR_PARTITION [refused-batch] ",
         "UNKNOWN_TOPIC_OR_PARTITION [refused-batch] it is called teas"),
        ("[refused] correct the password · tea[0]", [SLOW, REFUSED], "[refused] ", "[refused] correct the password"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_row_stands_before_its_own_words(
    info: str, findings: list[Finding], names: str, said: str
) -> None:
    assert heading_sizes(info, findings) == (len(names), len(said))


def test_consequences_are_codes_of_findings() -> None:
    assert set(CODES) >= CONSEQUENCES

"""The reports that the README shows are what the program says, and somebody read them."""

from tools.lab.reports import DOCS, reports


def test_the_reports_on_the_compared_clients_are_those_that_were_read() -> None:
    for name, words in reports().items():
        assert (DOCS / name).read_text(encoding="utf-8") == words, "read it, then run python -m tools.lab.reports"
        assert max(map(len, words.splitlines())) <= 80

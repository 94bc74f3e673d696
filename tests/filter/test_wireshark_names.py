"""Wireshark's names: what the page about filters says of them holds, and who types one is told ours."""

import re
from pathlib import Path

import pytest

from dissector.filter import FilterError, parse
from dissector.filter.compiler import WIRESHARK
from tests.cases import cases

PAGE = Path(__file__).parents[2] / "docs" / "filters.md"


def rows() -> list[tuple[str, str]]:
    """The filters of Wireshark's that the page translates, with what it has in place of each."""
    table = PAGE.read_text().partition("## From Wireshark")[2]
    found = re.findall(r"^\| (`[^|]*`) \| ([^|]*) \|$", table.replace("||", "or"), re.MULTILINE)
    return [(each, ours) for theirs, ours in found for each in re.findall(r"`([^`]*)`", theirs)]


def suggestions(text: str) -> tuple[str, ...]:
    with pytest.raises(FilterError) as found:
        parse(text)
    return found.value.near


def test_filters_of_the_page_are_suggested_or_work() -> None:
    assert len(rows()) > 15
    for theirs, ours in rows():
        if ours == "the same":
            parse(theirs)
        elif not theirs.startswith("kafka &&"):  # every row is Kafka's here
            assert suggestions(theirs)[0] in ours


@cases("theirs", sorted(WIRESHARK))
def test_every_suggested_name_is_one_of_ours(theirs: str) -> None:
    assert suggestions(theirs) == (WIRESHARK[theirs],)
    parse(WIRESHARK[theirs])

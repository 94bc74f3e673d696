"""Words of a picture are where the screen has them."""

import html
import re

from tui.terminal_app import one_text_a_word

WORD = re.compile(r'<text class="(\w+)" x="([\d.]+)" y="5" textLength="([\d.]+)" clip-path="c">([^<]*)</text>')


def element(text: str) -> str:
    """As Rich writes a run of text in cells 10 wide, from cell 2 on."""
    words = html.escape(text).replace(" ", "&#160;")
    return f'<text class="r1" x="20" y="5" textLength="{10 * len(text)}" clip-path="c">{words}</text>'


def test_each_word_has_its_place_and_its_width() -> None:
    assert WORD.findall(one_text_a_word(element("   12  <a&b> "))) == [
        ("r1", "50.0", "20.0", "12"), ("r1", "90.0", "50.0", "&lt;a&amp;b&gt;")
    ]  # fmt: skip


def test_wide_characters_take_two_cells() -> None:
    found = WORD.findall(one_text_a_word(element("日本 x")))
    assert [places[1:3] for places in found] == [("20.0", "40.0"), ("70.0", "10.0")]


def test_what_is_no_text_stays() -> None:
    picture = f'<svg><rect x="1"/>{element("x")}<text class="title" x="1">kdissect</text></svg>'
    assert one_text_a_word(picture).count("<rect") == 1
    assert '<text class="title" x="1">kdissect</text>' in one_text_a_word(picture)

"""Text in lines: of the field under a list, and of lists whose lines continue."""

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from tests.cases import cases
from tui.fitted_text import first_part, fitted_lines
from tui.widgets.line_list import INDENT, StyledLine, broken_line


@cases(
    ("text", "width", "most", "shown"),
    [
        ("Fetch v12 · 2 ms", 20, 2, "Fetch v12 · 2 ms"),
        ("Fetch v12 · 2 ms", 11, 2, "Fetch v12 ·\n2 ms"),
        ("Fetch v12 · 2 ms · orders", 11, 2, "Fetch v12 ·\n2 ms · ord…"),
        ("Fetch v12 · 2 ms", 11, 1, "Fetch v12 …"),
        ("request.topics.name", 8, 2, "request.\ntopics.…"),
        ("注文テーブル 注文", 9, 1, "注文テー…"),
        ("", 9, 2, ""),
    ],
)  # fmt: skip
def test_only_a_text_that_does_not_fit_its_lines_ends_with_an_ellipsis(
    text: str, width: int, most: int, shown: str
) -> None:
    assert fitted_lines(Console(), Text(text), width, most).plain == shown


@cases(
    ("text", "width", "parts"),
    [
        ("one two three", 13, ("one two three", "")),
        ("one two three", 12, ("one two", "three")),
        ("one two three", 7, ("one two", "three")),
        ("one two three", 2, ("on", "e two three")),
        ("注文テーブル", 5, ("注文", "テーブル")),
        ("注文", 1, ("注", "文")),
    ],
)  # fmt: skip
def test_the_first_part_of_a_text_ends_at_a_blank_if_it_can(text: str, width: int, parts: tuple[str, str]) -> None:
    assert first_part(text, width) == parts


@cases("width", [1, 2, 9, 12, 24, 30, 40, 79, 200])
def test_a_broken_line_has_all_words_and_one_target(width: int) -> None:
    words = "3 bytes that Metadata v13 does not have; reads as Metadata v13 with lengths that are not compact"
    line = StyledLine((("      60  ", "dim"), ("≠ ", "bad"), (words, ""), ("  [KIP-482]", "dim")), 7)
    parts = list(broken_line(line, width))
    assert [each.target for each in parts] == [7, *[None] * (len(parts) - 1)]
    texts = ["".join(text for text, _ in each.pieces) for each in parts]
    assert "".join("".join(texts).split()) == "".join(f"60 ≠ {words} [KIP-482]".split())
    assert width < INDENT or all(cell_len(each) < width for each in texts)
    assert all(each.startswith(" " * 12) for each in texts[1:]) == (width >= 40)


def test_a_line_that_fits_stays_as_it_is() -> None:
    line = StyledLine((("      60  ", "dim"), ("≠ ", "bad"), ("three bytes", "")), 7, is_head=True)
    assert list(broken_line(line, 24)) == [line]
    assert len(list(broken_line(line, 23))) == 2

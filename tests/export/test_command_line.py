"""The command is one line, which a shell splits into the original arguments."""

import shlex

from hypothesis import given
from hypothesis import strategies as st

from dissector.cli.export import ranges_of
from dissector.export.command_line import format_rows, show_command


def test_a_filter_is_quoted_for_the_shell() -> None:
    words = show_command(["orders.pcapng"], None, "topic == 'it''s' && latency > 50ms")
    assert shlex.split(words) == ["kdissect", "show", "orders.pcapng", "-Y", "topic == 'it''s' && latency > 50ms"]


def test_all_rows_are_shown() -> None:
    assert show_command(["orders.pcapng"], None) == "kdissect show orders.pcapng"


def test_some_rows_are_exported_to_standard_output() -> None:
    assert show_command(["a.pcapng"], "3,5-6") == "kdissect export a.pcapng --rows 3,5-6 --format json -w -"


def test_any_file_name_is_one_word() -> None:
    names = ["my orders; rm -rf $HOME `id`.pcapng", "it's", "-w", "[/red]"]
    assert shlex.split(show_command(names, None)) == ["kdissect", "show", names[0], names[1], "./-w", names[3]]


def test_control_characters_of_a_name_are_not_printed() -> None:
    assert show_command(["\x1b[2J\u202e.pcapng"], None).isprintable()


@given(st.sets(st.integers(0, 60), min_size=1))
def test_formatted_rows_are_parsed_as_the_same_rows(rows: set[int]) -> None:
    words = format_rows(sorted(rows))
    assert {number - 1 for part in ranges_of(words) for number in part} == rows
    assert words.count(",") == sum(row + 1 not in rows for row in rows) - 1

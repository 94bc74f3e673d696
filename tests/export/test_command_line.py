"""The command is one line of printable characters, which a shell splits into the original arguments."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissector.cli.export import ranges_of
from dissector.core.text import clean
from dissector.export.command_line import format_rows, show_command
from tests.cli.test_commands import JAVA, KDISSECT, kdissect
from tests.conftest import some_of

NAMES = st.one_of(
    st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=40),
    st.text("\n\r\t \\'\"$`!%-#&;*?~=0\x1b\u202e", min_size=1, max_size=12),
    st.binary(min_size=1, max_size=12).map(lambda raw: os.fsdecode(raw.translate(None, b"\0/") or b"x")),
).filter(lambda name: name not in (".", ".."))


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


@pytest.fixture(scope="module")
def shell_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `kdissect` that prints its arguments."""
    folder = tmp_path_factory.mktemp("shell")
    stub = folder / "kdissect"
    stub.write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n")
    stub.chmod(0o755)
    (folder / "files").mkdir()
    return folder


@given(NAMES, NAMES)
@example("a\nb.pcapng", "ends in line feeds\n\n")
@example("\n", "%s\n%d\\n")
@example("-w", "-\n")
@example("\x1b[2J\u202e.pcapng", "\udcff\\101.pcapng")
def test_a_shell_finds_files_of_any_name(shell_folder: Path, name: str, other: str) -> None:
    folder = shell_folder / "files"
    (folder / name).touch()
    words = show_command([name, other], "1-2", other)
    assert clean(words) == words
    environment = os.environ | {"PATH": f"{shell_folder}:{os.environ['PATH']}"}
    done = subprocess.run(["/bin/sh", "-c", words], cwd=folder, env=environment, capture_output=True, check=True)
    assert not done.stderr
    _, first, second, *rest = done.stdout.split(b"\0")
    assert rest[:2] == [b"-Y", os.fsencode(other)]
    assert (folder / os.fsdecode(first)).samefile(folder / name)
    assert Path(os.fsdecode(second)) == Path(other)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(["two\nlines.pcapng", "-w'\"\\\x07\udcff\n"], "two\nlines.pcapng"))
def test_the_exported_command_shows_the_same_rows(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(Path(JAVA).read_bytes())
    printed = kdissect("export", str(tmp_path / name), "-f", "command", "-w", "-").stdout.decode()
    program = tmp_path / "kdissect"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(KDISSECT)} "$@"\n')
    program.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["/bin/sh", "-c", printed], env=environment, capture_output=True, check=True)
    assert done.stdout == kdissect("show", JAVA).stdout


@given(st.sets(st.integers(0, 60), min_size=1))
def test_formatted_rows_are_parsed_as_the_same_rows(rows: set[int]) -> None:
    words = format_rows(sorted(rows))
    assert {number - 1 for part in ranges_of(words) for number in part} == rows
    assert words.count(",") == sum(row + 1 not in rows for row in rows) - 1

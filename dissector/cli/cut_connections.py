"""Says which captures have parts of the same connections, and the command that makes these whole."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dissector.cli.errors import print_error
from dissector.core.text import clean, counted

if TYPE_CHECKING:
    from dissector.tables.cut_connections import CutConnections

MOST_LINES: Final = 10
MOST_IN_COMMAND: Final = 20
MOST_IN_SENTENCE: Final = 3
Row = dict[str, Any]


def print_cut_connections(folder: str, epoch: int | None = None) -> None:
    """Print a line for each set of captures with parts of the same connections, of all or of those with captures of one
    run. The tables are as they are: a failure is reported, and fails nothing."""
    from dissector.tables.cut_connections import cut_connections
    from dissector.tables.delta_log import live_captures
    from dissector.tables.file_systems import normal_uri

    with reporting(f"{folder}: cannot tell which connections are cut"):
        captures = live_captures(normal_uri(folder))
        found = cut_connections(normal_uri(folder), captures, epoch)
        for each in found[:MOST_LINES]:
            print(_words(folder, each, captures), file=sys.stderr)
        if len(found) > MOST_LINES:
            print(f"{counted(len(found) - MOST_LINES, 'more set')} of captures with cut connections", file=sys.stderr)


@contextmanager
def reporting(words: str) -> Iterator[None]:
    """Report, behind these words, that tables can't be read; it ends the context and nothing more."""
    from dissector.tables.sql import is_sql_error
    from dissector.tables.storage import StorageError

    try:
        yield
    except Exception as error:  # DuckDB is imported on use, so that its errors have no name here
        if not isinstance(error, StorageError) and not is_sql_error(error):
            raise
        first, *_ = str(error).splitlines()
        print_error(f"{words}: {first}")


def forget_spare(folder: str, epoch: int) -> list[str]:
    """Remove the captures of a run of which other captures have everything. Return their paths. Raises `StorageError`,
    and `duckdb.Error` for files that can't be read."""
    from dissector.tables.cut_connections import cut_connections
    from dissector.tables.delta_log import live_captures, remove_captures
    from dissector.tables.file_systems import normal_uri

    uri = normal_uri(folder)
    found = cut_connections(uri, live_captures(uri), epoch)
    spare = [row for each in found for row in each.spare if row["epoch"] == epoch]
    if spare:
        remove_captures(uri, [row["capture"] for row in spare])
    return [row["path"] for row in spare]


def _words(folder: str, cut: "CutConnections", captures: Sequence[Row]) -> str:
    words = " and ".join(filter(None, (_repeated(cut), _cut(cut))))
    command = f"kdissect tables {{}} {shlex.quote(clean(folder))}"
    if cut.is_enough and len(cut.spare) <= MOST_IN_COMMAND:
        names = " ".join(shlex.quote(_name(row, captures)) for row in cut.spare)
        return f"{words}: {command.format('forget')} {names} leaves them once"
    options = {row["options"] for row in cut.together}
    if len(options) > 1:
        return f"{words}: ingest these again together, with the same options"
    command = command.format("replace")
    if len(cut.together) > MOST_IN_COMMAND:
        return f"{words}: {command} reads them together if it gets all {len(cut.together):,} captures of their runs"
    names = " ".join(shlex.quote(_name(row, captures)) for row in cut.together)
    key_log = " --keylog FILE" if "keylog" in options.pop() else ""
    return f"{words}: {command} {names}{key_log} reads them together"


def _repeated(cut: "CutConnections") -> str:
    if not cut.repeated:
        return ""
    verb = "is" if cut.repeated == 1 else "are"
    return f"{counted(cut.repeated, 'exchange')} of {_listed(cut.repeated_in)} {verb} also in {_listed(cut.first_in)}"


def _cut(cut: "CutConnections") -> str:
    if not cut.connections:
        return ""
    verbs = ("begins", "continues") if cut.connections == 1 else ("begin", "continue")
    return (
        f"{counted(cut.connections, 'connection')} {verbs[0]} in {_listed(cut.begin_in)}"
        f" and {verbs[1]} in {_listed(cut.continue_in)}"
    )


def _listed(captures: Sequence[Row]) -> str:
    """Return the names of captures, as in a sentence; of many the first ones."""
    names = [clean(Path(row["path"]).name) for row in captures[:MOST_IN_SENTENCE]]
    if len(captures) > MOST_IN_SENTENCE:
        names.append(counted(len(captures) - MOST_IN_SENTENCE, "other"))
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _name(row: Row, captures: Sequence[Row]) -> str:
    """Return a name for a command line: of the file, or digits of its digest if others have that name, too, or if it
    can't be typed."""
    from dissector.tables.reader import has_name

    file = Path(row["path"]).name
    is_unique = sum(has_name(each["path"], each["digest"], file) for each in captures) == 1
    return file if is_unique and clean(file) == file else str(row["capture"])

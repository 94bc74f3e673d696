"""What is found in tables, as captures: for the screen, and for what compares clients."""

import hashlib
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dissector.analysis.diff import DiffSide, build_matrix
from dissector.analysis.diff.to_json import matrix_to_json
from dissector.capture_session import Capture
from dissector.cli.table_captures import side_of_tables, write_capture
from dissector.core.json_text import dumps
from dissector.filter import Filter, parse
from tests.analysis.diff.cutting import cut, recording
from tests.conftest import PCAPS
from tests.conversation.test_packet_writer import comparable
from tests.pipeline.ingested import CAPTURES
from tests.tables.conftest import tables_of
from tests.tables.copied import copy_tables

if TYPE_CHECKING:
    from dissector.tables.reader import Tables


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("text", [None, "api == Fetch && latency > 5ms"])
def test_rows_that_fit_are_a_capture(tables: "Tables", text: str | None, tmp_path: Path) -> None:
    fitting: Filter | None = None if text is None else parse(text)
    found = write_capture(tables, fitting, tmp_path / "found.pcapng")
    with Capture(CAPTURES) as whole, Capture([found.path], ports=found.ports) as some:
        for capture in (whole, some):
            for _ in capture.read():
                pass
        wanted = [comparable(each) for each in whole.exchanges() if fitting is None or fitting.matches(each)]
        assert sorted(map(comparable, some.exchanges()), key=repr) == sorted(wanted, key=repr)
        assert found.rows == len(wanted)
        assert found.ports == {9092, 9094}


@pytest.mark.long
@pytest.mark.slow
def test_topics_have_names_that_only_other_exchanges_carry(tables: "Tables", tmp_path: Path) -> None:
    """Fetches have ids alone since KIP-516; Metadata has the names."""
    fitting = parse("api == Fetch && version >= 13")
    found = write_capture(tables, fitting, tmp_path / "found.pcapng")
    with (
        Capture(CAPTURES) as whole,
        Capture([found.path], ports=found.ports, topics=found.topics) as some,
        Capture([found.path], ports=found.ports) as without_state,
    ):
        wanted = sorted(each.row.info for each in whole.exchanges() if fitting.matches(each))
        assert sorted(each.row.info for each in some.exchanges()) == wanted
        assert sorted(each.row.info for each in without_state.exchanges()) != wanted


@pytest.mark.long
@pytest.mark.slow
def test_sides_in_tables_are_compared_as_their_captures_are(tmp_path: Path) -> None:
    """Captures that have all of their connections, lack their ends, or their beginnings: the last two are one recording
    without its middle, and read together."""
    parts = [cut(recording("java-4.3", "plain-1"), *tenths, tmp_path) for tenths in ((0, 5), (6, 10))]
    paths = [str(PCAPS / "compare-java-1.pcapng"), *parts]
    tables = tables_of(str(copy_tables(tmp_path / "tables", *paths)))
    written = [
        write_capture(side, None, tmp_path / f"{number}.pcapng")
        for number, path in enumerate(paths)
        for side in tables.captures_named(path)
    ]
    with ExitStack() as stack:
        whole = [stack.enter_context(Capture([path])) for path in paths]
        sides = [stack.enter_context(Capture([each.path], ports=each.ports, topics=each.topics)) for each in written]
        for capture in (*whole, *sides):
            for _ in capture.read():
                pass
        wanted, found = (
            dumps(matrix_to_json(build_matrix([DiffSide(each, str(n)) for n, each in enumerate(captures)])))
            for captures in (whole, sides)
        )
        assert found == wanted
        assert b"the beginning of" in wanted
        assert b"the end of" in wanted


@pytest.mark.long
@pytest.mark.slow
def test_sides_of_a_comparison_are_distinguished_by_their_folders(tables: "Tables", folder: str) -> None:
    assert side_of_tables(f"{folder}:java") == (folder, "java")
    assert side_of_tables(CAPTURES[0]) is None
    assert side_of_tables(f"{CAPTURES[0]}:java") is None
    digest = hashlib.sha256(Path(CAPTURES[0]).read_bytes()).hexdigest()
    relative = f"{os.path.relpath(PCAPS)}/java.pcapng"
    for name in (CAPTURES[0], relative, "java.pcapng", "java", digest, digest[:8]):
        assert len(tables.captures_named(name)) == 1, name
    for name in ("nobody", digest[:7], digest[1:], ""):
        assert tables.captures_named(name) == []

"""The commands on a folder of tables: what they print is what they print for the captures."""

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from dissector.analysis.diff import DiffSide, build_matrix
from dissector.analysis.diff.to_json import matrix_to_json
from dissector.capture_session import Capture
from dissector.core.extras import install_command
from dissector.core.json_text import dumps
from dissector.filter import parse
from tests.conftest import PCAPS
from tests.needs import needs_spark

pytestmark = [pytest.mark.slow, pytest.mark.spark]
CAPTURES = [str(PCAPS / f"{name}.pcapng") for name in ("java", "aiokafka")]


def kdissect(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dissector.cli.main", *words], capture_output=True, text=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    needs_spark()
    made = str(tmp_path_factory.mktemp("commands") / "tables")
    done = kdissect("ingest", *CAPTURES, "--out", made)
    assert done.returncode == 0, done.stderr
    return made


def test_workers_take_no_module_from_the_current_folder(tmp_path: Path) -> None:
    needs_spark()
    for name in ("dissector", "numpy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('from the current folder')")
    command = [sys.executable, "-P", "-m", "dissector.cli.main", "ingest", CAPTURES[0], "--out", "tables", "--master"]
    done = subprocess.run([*command, "local[1]"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 capture" in done.stdout + done.stderr


@pytest.mark.parametrize("words", [
    ("show", "-f", "json", "-Y", "topic && latency > 1ms"), ("show", "-f", "tree", "-Y", "number == 30"),
    ("show", "--limit", "3"),
    ("stats", "-Y", "api == Fetch || api == Produce"), ("stats", "--plot"),
])  # fmt: skip
def test_tables_are_printed_as_their_captures_are(folder: str, words: tuple[str, ...]) -> None:
    command, *options = words
    found, wanted = kdissect(command, folder, *options), kdissect(command, *CAPTURES, *options)
    assert found.returncode == wanted.returncode == 0, found.stderr
    assert found.stdout == wanted.stdout
    assert wanted.stdout
    assert ("frames were not kept" in found.stderr) == ("tree" in options)


def test_diff_gives_the_matrix_of_the_captures_themselves(folder: str) -> None:
    """Two clients, and one client id of the second: of a name, of a path, of a client."""
    client = "aiokafka-producer-1"
    done = kdissect("diff", f"{folder}:java", f"{folder}:{CAPTURES[1]}", f"{folder}:{client}", "-f", "json")
    assert done.returncode == 1, done.stderr
    with ExitStack() as stack:
        java, aiokafka = (stack.enter_context(Capture([path])) for path in CAPTURES)
        for capture in (java, aiokafka):
            for _ in capture.read():
                pass
        chosen = parse(f'client_id == "{client}"')
        sides = [DiffSide(java, "java"), DiffSide(aiokafka, CAPTURES[1]), DiffSide(aiokafka, client, chosen)]
        expected = dumps(matrix_to_json(build_matrix(sides))).decode()
    assert done.stdout == f"{expected}\n"
    assert len(set(json.loads(done.stdout)["behaviour"]["software"])) == 3
    assert "only captures are compared field by field" in done.stderr


@pytest.mark.parametrize(("words", "code", "line"), [
    (("show", "-Y", "latency > 1h"), 1, "rows match"),
    (("show", "--port", "9092"), 2, "are for captures"), (("show", str(CAPTURES[0])), 2, "name one folder of tables"),
])  # fmt: skip
def test_what_can_t_be_is_one_line(folder: str, words: tuple[str, ...], code: int, line: str) -> None:
    command, *options = words
    done = kdissect(command, folder, *options)
    assert done.returncode == code
    assert line in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1


WITHOUT_LIBRARIES = """
import sys
for name in ("duckdb", "deltalake", "pyarrow"):
    sys.modules[name] = None
from dissector.cli.every_command import app
for words in sys.argv[2:]:
    command = words.replace("FOLDER", sys.argv[1]).split()
    try:
        app(command)
    except SystemExit as ended:
        print(ended.code, *command[:2])
"""
OF_TABLES = (
    "show FOLDER", "stats FOLDER", "ingest FOLDER --out FOLDER", "tables list FOLDER", "tables forget FOLDER a",
    "tables replace FOLDER a", "tables compact FOLDER", "tables vacuum FOLDER", "tables upgrade FOLDER",
    "tables verify FOLDER", "tables views FOLDER",
)  # fmt: skip


def test_without_what_reads_tables_one_line_says_so(tmp_path: Path) -> None:
    """Of every command that needs it."""
    (tmp_path / "captures").mkdir()
    words = [sys.executable, "-c", WITHOUT_LIBRARIES, str(tmp_path), *OF_TABLES]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    line = f"kdissect: tables need more libraries: {install_command('tables')}"
    assert done.stderr.splitlines() == [line] * len(OF_TABLES), done.stderr
    assert [each.split()[0] for each in done.stdout.splitlines()] == ["2"] * len(OF_TABLES)

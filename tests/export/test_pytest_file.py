"""The exported file passes under pytest in a separate process; a real client can connect to its server."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.export.pytest_file import pytest_file
from tests.conftest import PCAPS
from tests.traffic import Turn, capture_of, conversation, request, response

HOSTILE = b'\x1b]0;x\x07"""\n\\\' \xff \xe2\x80\xae {0} %s'


def text_of(path: Path | str) -> str:
    with Capture([str(path)]) as capture:
        list(capture.read())
        return "".join(pytest_file(capture, range(len(capture))))


def run(*paths: Path) -> subprocess.CompletedProcess[str]:
    """Run pytest on these files of one folder, without plugins: they need none."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(paths[0].parent)]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [*words, *map(str, paths)], capture_output=True, text=True, timeout=120, check=False, env=environment
    )


@pytest.mark.long
@pytest.mark.slow
def test_exported_files_pass(tmp_path: Path) -> None:
    files = []
    for name in ("java", "librdkafka-acks0", "java-sasl-plain", "plain-socket-message-sets", "encoder"):
        files.append(tmp_path / f"test_{name.replace('-', '_')}.py")
        files[-1].write_text(text_of(PCAPS / f"{name}.pcapng"), "ascii")
    done = run(*files)
    assert done.returncode == 0, done.stdout[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    recorded = sum(len(re.findall(r"^    Recorded\(", file.read_text(), re.MULTILINE)) for file in files)
    assert int(passed[1]) == recorded + len(files), "each exchange, and all of a file through one connection"


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_wrong_byte_fails(tmp_path: Path) -> None:
    """So what passes is not passed over."""
    turns = [Turn(True, request(7)), Turn(False, response(7))]
    text = text_of(capture_of(tmp_path, conversation(turns)))
    file = tmp_path / "test_replay.py"
    file.write_text(text.replace("api_version=0", "api_version=1"), "ascii")
    done = run(file)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout, "what the broker answers is what was recorded"


@pytest.mark.long
@pytest.mark.slow
def test_text_of_the_wire_is_not_code(tmp_path: Path) -> None:
    turns = [Turn(True, request(7, client_id=HOSTILE)), Turn(False, response(7))]
    text = text_of(capture_of(tmp_path, conversation(turns)))
    assert text.isascii()
    assert not any(character < " " and character != "\n" for character in text)
    [client_id] = [
        ast.literal_eval(keyword.value)
        for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)
        for keyword in node.keywords if keyword.arg == "client_id"
    ]  # fmt: skip
    assert client_id == HOSTILE.decode("utf-8", "surrogateescape")
    file = tmp_path / "test_replay.py"
    file.write_text(text, "ascii")
    assert run(file).returncode == 0


def test_incomplete_exchanges_are_counted(tmp_path: Path) -> None:
    text = text_of(capture_of(tmp_path, conversation([Turn(True, request(7)), Turn(False, response(8))])))
    assert "# 1 row left out" in text
    assert text.count("    Recorded(") == 1

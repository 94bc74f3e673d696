"""The exported file passes under pytest in a separate process; a real client can connect to its server."""

import ast
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


def run(path: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(path.parent), str(path)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["java", "librdkafka-acks0", "java-sasl-plain", "plain-socket-message-sets", "encoder"]
)
def test_the_exported_file_passes(name: str, tmp_path: Path) -> None:
    file = tmp_path / "test_replay.py"
    file.write_text(text_of(PCAPS / f"{name}.pcapng"), "ascii")
    done = run(file)
    assert done.returncode == 0, done.stdout[-2000:]
    assert " passed" in done.stdout


@pytest.mark.slow
def test_a_wrong_byte_fails(tmp_path: Path) -> None:
    """So what passes is not passed over."""
    turns = [Turn(True, request(7)), Turn(False, response(7))]
    text = text_of(capture_of(tmp_path, conversation(turns)))
    file = tmp_path / "test_replay.py"
    file.write_text(text.replace("api_version=0", "api_version=1"), "ascii")
    done = run(file)
    assert done.returncode == 1
    assert "2 failed" in done.stdout


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

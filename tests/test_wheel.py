"""A wheel of this tree works alone: its library is inside, and its tag names a platform and no one Python."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from typer.main import get_command

from dissector.cli.every_command import app
from dissector.cli.reference import manual
from tests.test_documents import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]  # to build one takes ten seconds of CPU and more
KERNEL = "dissector/protocol/kernel/"
QUICKLY = {**os.environ, "CFLAGS": "-O0", "PIP_NO_COMPILE": "1", "PIP_NO_CACHE_DIR": "1"}
"""An environment in which the library is not optimized, and nothing that is installed is compiled to byte code. Of a
tree whose folder has a dash in its name, pip would keep the wheel, and the tests have no cache folder."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, as any installer builds it. It fetches the build requirements."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(out), str(ROOT)]
    subprocess.run(command, check=True, env=QUICKLY)
    (made,) = out.iterdir()
    return made


def test_a_wheel_is_of_one_platform_and_any_python_3(wheel: Path) -> None:
    python, abi, platform = wheel.stem.split("-")[2:]
    assert (python, abi) == ("py3", "none")
    assert platform != "any"


def test_a_wheel_has_the_library_and_not_its_source(wheel: Path) -> None:
    files = {name.removeprefix(KERNEL) for name in zipfile.ZipFile(wheel).namelist() if name.startswith(KERNEL)}
    assert "libkernel.so" in files
    assert [name for name in files if name.endswith((".c", ".h"))] == []


def test_a_wheel_has_the_samples_and_a_readme_without_relative_links(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    assert archive.read("dissector/samples/orders.pcapng") == (ROOT / "pcaps/java.pcapng").read_bytes()
    (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
    metadata = archive.read(name).decode()
    assert "Eight tasks" in metadata
    assert re.findall(r"\]\((?!https:)[^)]*\)", metadata) == []


def test_a_wheel_has_the_manual_page_of_the_program(wheel: Path) -> None:
    """Where `man` looks for it below the environment; it is made with typer alone, and says the wheel's version."""
    archive = zipfile.ZipFile(wheel)
    (name,) = (each for each in archive.namelist() if each.endswith(".data/data/share/man/man1/kdissect.1"))
    page = archive.read(name).decode()
    assert page == manual(get_command(app), wheel.name.split("-")[1])


def test_a_wheel_shows_a_capture_without_the_tree(wheel: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path), str(wheel)]
    subprocess.run(pip, check=True, env=QUICKLY)
    script = (
        "import sys; from dissector.core.kernel import PATH, library; library(); print(PATH, flush=True);"
        "sys.argv[1:] = ['show', sys.argv[1]]; from dissector.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(ROOT / "pcaps/librdkafka.pcapng")],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    first, *rows = done.stdout.splitlines()
    assert first == str(tmp_path / KERNEL / "libkernel.so")
    assert any("Metadata" in row for row in rows)

"""Commands in documents, and what they print: `make docs-outputs` runs them and writes their output behind them.

A command stands in a block of `console`, behind ``$``. It runs in a folder with what `kdissect samples` copies, with
`COLUMNS` columns; stdout comes before stderr. A command with a pipe or a redirection runs in a shell;
others, and those that only `head` cuts, in a fork of a process that has imported everything.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.forked import run_module

ROOT: Final = Path(__file__).parents[2]
COLUMNS: Final = 100
DOCUMENTS: Final = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_BLOCK: Final = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.DOTALL | re.MULTILINE)
_HEAD: Final = re.compile(r" \| head -(\d+)$")
_OF_A_SHELL: Final = re.compile(r"[|<>;&]")


@dataclass(frozen=True, slots=True)
class Shown:
    """A command and the output that a document has for it."""

    command: str
    output: str


def shown(text: str) -> Iterator[Shown]:
    """Yield the commands of a document with their outputs."""
    for block in _BLOCK.findall(text):
        yield from commands(block)


def commands(block: str) -> Iterator[Shown]:
    """Yield the commands of a block."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield Shown(command, output)


def run(command: str, folder: Path) -> str:
    """Run a command line in a folder; return what it prints."""
    with chdir(folder):
        cut = _HEAD.search(command)
        line = command[: cut.start()] if cut else command
        words = shlex.split(line)
        if _OF_A_SHELL.search(re.sub(r"'[^']*'|\"[^\"]*\"", "", line)) or words[0] != "kdissect":
            done = subprocess.run(line, shell=True, capture_output=True, env=_environment(folder), check=False)
        else:
            files = [name for word in words[1:] for name in _expanded(word)]
            done = run_module("dissector.cli.main", files, _environment(folder))
    lines = (done.stdout + done.stderr).decode().splitlines(keepends=True)
    return "".join(f"{line.rstrip()}\n" for line in (lines[: int(cut[1])] if cut else lines))


def _expanded(word: str) -> list[str]:
    """Return a word as a shell expands it."""
    return sorted(map(str, Path().glob(word))) if "*" in word and " " not in word else [word]


def _environment(folder: Path) -> dict[str, str]:
    programs = Path(sys.executable).parent
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "PYTHONPATH")}
    return kept | {
        "PATH": f"{programs}:{kept.get('PATH', '')}", "COLUMNS": str(COLUMNS), "NO_COLOR": "1", "HOME": str(folder),
        "TZ": "UTC", "XDG_DATA_HOME": "/proc/nonexistent", "XDG_CONFIG_HOME": "/proc/nonexistent",
    }  # fmt: skip


def with_samples(folder: Path) -> None:
    """Copy the samples, as the first command of each page does."""
    run("kdissect samples", folder)


def written_again(text: str, folder: Path) -> str:
    """Return a document with what its commands print now."""
    return _BLOCK.sub(
        lambda block: "".join(f"$ {each.command}\n{run(each.command, folder)}" for each in commands(block[1])), text
    )


def main() -> None:
    """Write outputs into all documents, or those that are named."""
    for path in map(Path, sys.argv[1:]) if len(sys.argv) > 1 else DOCUMENTS:
        with TemporaryDirectory() as name:
            with_samples(Path(name))
            text = path.read_text(encoding="utf-8")
            now = written_again(text, Path(name))
        if now != text:
            path.write_text(now, encoding="utf-8")
            print(f"written again: {path}")


if __name__ == "__main__":
    main()
